"""Trajectories of SWE-agent (`.traj`).

Source: SWE-agent/SWE-agent, docs/usage/trajectories.md: `trajectory` (action, observation, response, thought of each
step), `history` (the messages), `info`, `replay_config`. With function calling an entry of the assistant has
`tool_calls` with arguments as texts, and results have role `tool`; in the text form the action stands in the content
and the observation is a user's message. Entries with `is_demo` are part of the prompt. The tools are not in it, only
the names of their bundles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Said, Setting, Transcript
from agentspec.replay.readers.base import Format, Item, Record, name_at, object_at, objects, parsed, rows
from agentspec.replay.readers.messages import assistant, content_of, openai_said, text_of, tool_result


def read(record: Record) -> Iterator[Item]:
    """The conversation of one run.

    Raises:
        TraceError: It can't be used.
    """
    transcript = Transcript()
    for entry in objects(record.value, "history"):
        transcript.add(_said(entry), target=not entry.get("is_demo"))
    if not transcript.messages:
        raise TraceError("history is empty")
    config = parsed(record.value.get("replay_config"))
    agent = object_at(config, "agent") if isinstance(config, dict) else {}
    setting = Setting(model=name_at(object_at(agent, "model"), "name"))
    yield from transcript.conversation(record.file, record.line, PurePath(record.file).stem, setting=setting)


def _said(entry: Mapping[str, Any]) -> Said:
    role, content = entry.get("role"), entry.get("content")
    if role == "assistant":
        said = openai_said({"role": role, "tool_calls": entry.get("tool_calls")})
        return Said(assistant(text_of(content), objects(said.message, "tool_calls")), said.approximate)
    if role == "tool":
        ids = entry.get("tool_call_ids")
        return Said(tool_result(str(ids[0]) if isinstance(ids, list) and ids else "", content))
    return Said({"role": role, "content": content_of(content)})


FORMAT = Format(
    "SWE-agent",
    "trajectories of SWE-agent (.traj)",
    "history and trajectory",
    lambda value: isinstance(value, dict) and isinstance(value.get("history"), list) and "trajectory" in value,
    rows(read),
)
