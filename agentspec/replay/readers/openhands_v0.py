"""Event histories of OpenHands 0.x: the `output.jsonl` of its evaluations, and downloaded trajectories.

Source: All-Hands-AI/OpenHands, `openhands/events/`. An evaluation's row has `history`, a trajectory is the bare list of
events. Each has a `source` and an `action` or an `observation`. `system` holds the system prompt and the tools,
`message` a user's or an agent's text. What the model wrote is in `tool_call_metadata.model_response`, a whole chat
completion, at every event that came of it, and counts once. An agent's action without it was written as text that is
not kept: its thought and arguments are approximate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentspec.replay.conversations import Said, Setting, Transcript
from agentspec.replay.readers import chat_api
from agentspec.replay.readers.base import Format, Item, Record, name_at, nothing, object_at, objects, text_at
from agentspec.replay.readers.messages import as_tools, assistant, call, tool_result

_SILENT = frozenset({"recall", "agent_state_changed", "null", "change_agent_state", "condensation"})
"""Actions and observations that the model is told nothing of, or that another event tells."""


class Reader:
    """Collects the events of one history."""

    def __init__(self) -> None:
        self._events = _Events()
        self._first: Record | None = None

    def feed(self, record: Record) -> Iterable[Item]:
        """Take an event, or a row with a whole history."""
        if "history" not in record.value:
            self._events.take(record.value)
            self._first = self._first or record
            return nothing()
        events = _Events()
        for event in objects(record.value, "history"):
            events.take(event)
        name = name_at(record.value, "instance_id") or f"line {record.line}"
        model = name_at(object_at(object_at(record.value, "metadata"), "llm_config"), "model")
        return events.conversation(record, name, model)

    def finish(self) -> Iterable[Item]:
        """The conversation."""
        return self._events.conversation(self._first, f"line {self._first.line}", "") if self._first else nothing()


class _Events:
    def __init__(self) -> None:
        self._transcript = Transcript()
        self._tools: tuple[dict[str, Any], ...] = ()
        self._responses: set[str] = set()

    def conversation(self, record: Record, name: str, model: str) -> Iterator[Item]:
        setting = Setting(tools=self._tools, model=model)
        return self._transcript.conversation(record.file, record.line, name, setting=setting)

    def take(self, event: Mapping[str, Any]) -> None:
        kind = text_at(event, "observation") or text_at(event, "action")
        metadata = object_at(event, "tool_call_metadata")
        if kind in _SILENT and not metadata:
            return
        if "observation" in event:
            self._observe(text_at(event, "content"), metadata)
        elif kind == "system":
            args = object_at(event, "args")
            self._tools = as_tools(objects(args, "tools"))
            self._transcript.add(Said({"role": "system", "content": text_at(args, "content")}))
        elif event.get("source") == "agent":
            self._act(event, kind, metadata)
        elif kind == "message":
            self._transcript.add(Said({"role": "user", "content": text_at(object_at(event, "args"), "content")}))

    def _observe(self, content: str, metadata: Mapping[str, Any]) -> None:
        if metadata:
            call_id, name = text_at(metadata, "tool_call_id"), text_at(metadata, "function_name")
            self._transcript.add(Said(tool_result(call_id, content, name)))
        else:
            self._transcript.add(Said({"role": "user", "content": content}))

    def _act(self, event: Mapping[str, Any], kind: str, metadata: Mapping[str, Any]) -> None:
        response = object_at(metadata, "model_response")
        name = name_at(response, "id")
        if response and name in self._responses:
            return
        self._responses.add(name)
        args = object_at(event, "args")
        if response:
            self._transcript.add(chat_api.answers(response)[0])
        elif kind == "message":
            self._transcript.add(Said(assistant(text_at(args, "content"))))
        else:
            rest = {key: value for key, value in args.items() if key != "thought"}
            made = call(kind, rest, text_at(metadata, "tool_call_id"))
            self._transcript.add(Said(assistant(text_at(args, "thought"), [made]), approximate=True))


def _recognises(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    history = value.get("history")
    return any(map(_is_event, history)) if isinstance(history, list) else _is_event(value)


def _is_event(event: object) -> bool:
    if not isinstance(event, dict) or not isinstance(event.get("source"), str):
        return False
    return isinstance(event.get("action"), str) or isinstance(event.get("observation"), str)


FORMAT = Format(
    "OpenHands 0.x",
    "event histories of OpenHands and its evaluations",
    "source with action or observation; or history of such events",
    _recognises,
    Reader,
)
