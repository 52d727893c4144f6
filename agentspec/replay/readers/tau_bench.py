"""Trajectories of tau-bench.

Source: sierra-research/tau-bench, `historical_trajectories/`: a list of objects with `task_id`, `trial`, `reward`,
`info` and `traj`, messages in OpenAI's form that start with the system prompt. Arguments are texts, as the model wrote
them; the tools are not in the file. Every assistant message is the agent's; the user is simulated by another model.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentspec.errors import TraceError
from agentspec.replay.conversations import Transcript
from agentspec.replay.readers.base import Format, Item, Record, name_at, objects, rows
from agentspec.replay.readers.messages import openai_said


def read(record: Record) -> Iterator[Item]:
    """The conversation of one trial.

    Raises:
        TraceError: It can't be used.
    """
    transcript = Transcript()
    transcript.extend([openai_said(message) for message in objects(record.value, "traj")])
    if not transcript.messages:
        raise TraceError("traj is missing or empty")
    task, trial = name_at(record.value, "task_id"), name_at(record.value, "trial")
    yield from transcript.conversation(record.file, record.line, f"task {task} trial {trial}")


FORMAT = Format(
    "tau-bench",
    "trials of tau-bench",
    "traj",
    lambda value: isinstance(value, dict) and isinstance(value.get("traj"), list),
    rows(read),
)
