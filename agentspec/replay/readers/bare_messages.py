"""Messages in OpenAI's or Anthropic's form and nothing around them: a JSON list of them, or one a line.

Source: their API references: what a client holds as its history. A file, or a list, is one conversation.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentspec.replay.conversations import Transcript
from agentspec.replay.readers.any_message import read_any
from agentspec.replay.readers.base import Format, Item, Record, nothing

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


class Reader:
    """Collects the messages of one list."""

    def __init__(self) -> None:
        self._transcript = Transcript()
        self._first: Record | None = None

    def feed(self, record: Record) -> Iterable[Item]:
        """Take a message."""
        self._transcript.extend(read_any(record.value))
        self._first = self._first or record
        return nothing()

    def finish(self) -> Iterable[Item]:
        """The conversation."""
        if self._first is None:
            return nothing()
        return self._transcript.conversation(self._first.file, self._first.line, f"line {self._first.line}")


def _recognises(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        return False
    return value["role"] in _ROLES and bool({"content", "tool_calls", "function_call"} & value.keys())


FORMAT = Format(
    "messages",
    "a list of messages in OpenAI's or Anthropic's form",
    "role with content or tool_calls",
    _recognises,
    Reader,
)
