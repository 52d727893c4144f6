"""Session files of Codex CLI (`~/.codex/sessions/**/rollout-*.jsonl`).

Source: openai/codex, `codex-rs/protocol` and `codex-rs/core/src/rollout`. Lines of `timestamp`, `type` and `payload`:
`session_meta`, `turn_context` (the model), `response_item` (an item of OpenAI's Responses API, see `responses_api`),
`event_msg` (what the terminal showed) and `compacted`, behind which the history begins again with the summary.
`thread_rolled_back` takes turns of the user back. Files before version 0.32 have the items themselves as lines, behind
a first line with `id` and `timestamp`. Arguments are texts, as the model wrote them; of its thoughts there is only a
summary, so most answers are approximate. The tools are not in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Said, Setting, Transcript
from agentspec.replay.readers.base import Format, Item, Record, name_at, nothing, objects, text_at
from agentspec.replay.readers.messages import content_of, text_of
from agentspec.replay.readers.responses_api import is_item, read_items

_LINES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state"})
_SUMMARY = "The conversation so far was summed up:\n\n"
_NO_MESSAGE = frozenset({"ghost_snapshot", "compaction", "compaction_summary", "other"})


class Reader:
    """Collects the conversations of one session file."""

    def __init__(self) -> None:
        self._items: list[Mapping[str, Any]] = []
        self._before: list[Said] = []  # messages that the history began again with
        self._first: Record | None = None
        self._name = ""
        self._model = ""
        self._instructions: object = None

    def feed(self, record: Record) -> Iterator[Item]:
        """Take a line; a conversation comes out where the history begins again."""
        row = record.value
        self._first = self._first or record
        kind = text_at(row, "type")
        payload = row.get("payload") if kind in _LINES else row
        if not isinstance(payload, dict):
            raise TraceError("payload is not an object")
        if kind in _LINES - {"response_item"}:
            yield from self._told(record, kind, payload)
        elif kind == "response_item" or is_item(row):
            self._take(payload)
        else:
            self._begin(payload)

    def finish(self) -> Iterator[Item]:
        """The conversation that is left."""
        return iter(self._conversation())

    def _told(self, record: Record, kind: str, payload: Mapping[str, Any]) -> Iterator[Item]:
        if kind == "session_meta":
            self._begin(payload)
        elif kind == "turn_context":
            self._model = self._model or name_at(payload, "model")
        elif kind == "compacted":
            yield from self._conversation()
            self._begin_again(record, payload)
        elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            yield from self._conversation()
            self._take_back(record, payload)

    def _begin(self, payload: Mapping[str, Any]) -> None:
        self._name = self._name or name_at(payload, "id")
        told = payload.get("base_instructions", payload.get("instructions"))
        told = told.get("text") if isinstance(told, dict) else told
        self._instructions = self._instructions or told

    def _take(self, item: Mapping[str, Any]) -> None:
        if text_at(item, "type") not in _NO_MESSAGE:
            read_items([item])  # that it can be used
            self._items.append(item)

    def _begin_again(self, record: Record, payload: Mapping[str, Any]) -> None:
        """After a compaction: with the history that replaces the old one, or with its summary."""
        history = objects(payload, "replacement_history")
        summary = Said({"role": "user", "content": _SUMMARY + text_at(payload, "message")})
        self._before = read_items(history) if history else [summary]
        self._items, self._first = [], record

    def _take_back(self, record: Record, payload: Mapping[str, Any]) -> None:
        count = payload.get("num_turns")
        asked = [place for place, item in enumerate(self._items) if _is_prompt(item)]
        if isinstance(count, int) and 0 < count <= len(asked):
            self._before += read_items(self._items[: asked[-count]])
            self._items, self._first = [], record

    def _conversation(self) -> Iterator[Item]:
        said = read_items(self._items)
        if self._first is None or not any(each.message["role"] == "assistant" for each in said):
            return nothing()
        transcript = Transcript()
        if isinstance(self._instructions, str) and self._instructions:
            transcript.add(Said({"role": "system", "content": content_of(self._instructions)}))
        transcript.extend(self._before, target=False)
        transcript.extend(said)
        name = self._name or PurePath(self._first.file).stem
        return transcript.conversation(self._first.file, self._first.line, name, setting=Setting(model=self._model))


def _is_prompt(item: Mapping[str, Any]) -> bool:
    """Whether an item is what the user wrote: what Codex adds is in tags."""
    return item.get("role") == "user" and not text_of(item.get("content")).startswith("<")


def _recognises(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("payload"), dict):
        return isinstance(value.get("type"), str) and value["type"] in _LINES
    header = "type" not in value and {"id", "timestamp"} <= value.keys() and {"git", "instructions"} & value.keys()
    return bool(header) or "record_type" in value or is_item(value)


FORMAT = Format(
    "Codex",
    "session files of Codex CLI",
    "type session_meta, response_item and their like with payload; or a first line with id, timestamp and instructions",
    _recognises,
    Reader,
)
