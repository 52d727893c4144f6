"""Items of OpenAI's Responses API and nothing around them: a JSON list of them, or one a line; and bodies of requests.

Source: OpenAI's API reference, Responses; see `responses_api`. A list is one conversation; what stands between two
items that no model wrote is one answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentspec.replay.conversations import Said, Transcript
from agentspec.replay.readers.base import Format, Item, Record, name_at, nothing
from agentspec.replay.readers.responses_api import is_item, read_items, request


class Reader:
    """Collects the items of one list."""

    def __init__(self) -> None:
        self._items: list[Record] = []

    def feed(self, record: Record) -> Iterable[Item]:
        """Take an item, or read a whole body."""
        if "input" not in record.value:
            read_items([record.value])  # that it can be used
            self._items.append(record)
            return nothing()
        transcript = Transcript()
        messages, setting = request(record.value)
        said = read_items(record.value["input"])
        transcript.extend([Said(message) for message in messages[: len(messages) - len(said)]] + said)
        trace_id = name_at(record.value, "trace_id", "id") or f"line {record.line}"
        return transcript.conversation(record.file, record.line, trace_id, setting=setting)

    def finish(self) -> Iterable[Item]:
        """The conversation."""
        if not self._items:
            return nothing()
        transcript = Transcript()
        transcript.extend(read_items([record.value for record in self._items]))
        first = self._items[0]
        return transcript.conversation(first.file, first.line, f"line {first.line}")


def _recognises(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("input"), list):
        return any(map(is_item, value["input"]))
    return is_item(value)


FORMAT = Format(
    "OpenAI responses",
    "items of OpenAI's Responses API, or bodies of its requests",
    "type message, reasoning, function_call and their like; or input with such items",
    _recognises,
    Reader,
)
