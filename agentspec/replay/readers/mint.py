"""Results of MINT, agents that write Python between tags.

Source: xingyaoww/mint-bench, `data/outputs/**/results.jsonl`: `state.history` holds messages of roles `user` and
`assistant`, plain text; `task` says which one it was. There are no tools: code stands in `<execute>`, what it printed
comes back as the user.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentspec.errors import TraceError
from agentspec.replay.conversations import Transcript
from agentspec.replay.readers.base import Format, Item, Record, name_at, object_at, objects, rows
from agentspec.replay.readers.messages import openai_said


def read(record: Record) -> Iterator[Item]:
    """The conversation of one task.

    Raises:
        TraceError: It can't be used.
    """
    transcript = Transcript()
    transcript.extend([openai_said(message) for message in objects(record.value["state"], "history")])
    if not transcript.messages:
        raise TraceError("state.history is empty")
    task = object_at(record.value, "task")
    name = f"{name_at(task, 'task_name')} {name_at(task, 'task_id')}".strip()
    yield from transcript.conversation(record.file, record.line, name or f"line {record.line}")


def _recognises(value: object) -> bool:
    state = value.get("state") if isinstance(value, dict) else None
    return isinstance(state, dict) and isinstance(state.get("history"), list)


FORMAT = Format("MINT", "results of MINT's code interpreter tasks", "state with history", _recognises, rows(read))
