"""Takes an answer in the Hermes format apart, however it arrives."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable

from agentspec.chat.base import BrokenCallDelta, Delta, TextDelta, ToolCallDelta
from agentspec.chat.stream import overlap
from agentspec.grammar.tools import CLOSE, OPEN

_OPENINGS = ("\n" + OPEN, OPEN)
_HEAD = re.compile(r'\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*(?=\{)')
_PLAIN = re.compile(r'[^"{}]+')
_IN_STRING = re.compile(r'[^"\\]+')


def new_call_id() -> str:
    """An id that no other call has."""
    return f"call_{uuid.uuid4().hex[:24]}"


class HermesParser:
    """Text, then `<tool_call>` JSON `</tool_call>`, any number of times.

    One newline before a call belongs to its marker, white space after a call to nothing. The arguments are given out
    while they are written. A call is complete when its JSON object is, and can be read; of one that is not, nothing is
    lost: it comes as a `BrokenCallDelta`.
    """

    def __init__(self, *, call_id: Callable[[], str] = new_call_id) -> None:
        self._call_id = call_id
        self._calls = 0
        self._text = ""
        """What is not dealt with yet."""
        self._state: Callable[[], list[Delta] | None] = self._in_text
        self._arguments = _ObjectScanner()

    def feed(self, text: str) -> list[Delta]:
        """What is known after more of the text."""
        self._text += text
        deltas: list[Delta] = []
        while (more := self._state()) is not None:
            deltas += more
        return deltas

    def finish(self) -> list[Delta]:
        """What is left at the end: held-back text, or the part of a call that was cut off."""
        left, self._text = self._text, ""
        if self._state == self._in_text:
            return [TextDelta(left)] if left else []
        if self._state == self._in_arguments:
            return [BrokenCallDelta(self._calls - 1, left)]
        if self._state == self._before_close:
            return self._closed(left)
        if self._state == self._in_body:
            return self._whole(left)
        return []

    def _in_text(self) -> list[Delta] | None:
        starts = [(found, marker) for marker in _OPENINGS if (found := self._text.find(marker)) >= 0]
        if starts:
            found, marker = min(starts)
            shown, self._text = self._text[:found], self._text[found + len(marker) :]
            self._state = self._in_body
            return [TextDelta(shown)] if shown else []
        size = len(self._text) - max(overlap(self._text, marker) for marker in _OPENINGS)
        shown, self._text = self._text[:size], self._text[size:]
        return [TextDelta(shown)] if shown else None

    def _in_body(self) -> list[Delta] | None:
        body, close, rest = self._text.partition(CLOSE)
        head = _HEAD.match(body)
        name = _read_string(head.group(1)) if head is not None else None
        if head is not None and name is not None:
            self._text = self._text[head.end() :]
            self._state, self._arguments = self._in_arguments, _ObjectScanner()
            self._calls += 1
            return [ToolCallDelta(self._calls - 1, self._call_id(), name)]
        if not close:
            return None
        self._text, self._state = rest, self._after_call
        return self._whole(body)

    def _in_arguments(self) -> list[Delta] | None:
        if not self._text:
            return None
        taken = self._arguments.take(self._text)
        piece, self._text = self._text[:taken], self._text[taken:]
        if self._arguments.done:
            self._state = self._before_close
        return [ToolCallDelta(self._calls - 1, arguments=piece)]

    def _before_close(self) -> list[Delta] | None:
        body, close, rest = self._text.partition(CLOSE)
        if not close:
            return None
        self._text, self._state = rest, self._after_call
        return self._closed(body)

    def _after_call(self) -> list[Delta] | None:
        self._text = self._text.lstrip()
        if not self._text:
            return None
        self._state = self._in_text
        return []

    def _closed(self, tail: str) -> list[Delta]:
        """Nothing, if a call whose arguments were given out ends well with `tail`."""
        sound = tail.lstrip().startswith("}") and self._arguments.valid
        return [] if sound else [BrokenCallDelta(self._calls - 1, tail)]

    def _whole(self, body: str) -> list[Delta]:
        """A call that is not written in the usual order, or is no call."""
        call = _read_call(body)
        if call is None:
            return [BrokenCallDelta(None, body)]
        self._calls += 1
        index = self._calls - 1
        return [ToolCallDelta(index, self._call_id(), call[0]), ToolCallDelta(index, arguments=call[1])]


def _read_string(text: str) -> str | None:
    try:
        value: str = json.loads(text, strict=False)
    except ValueError:
        return None
    return value


def _read_call(body: str) -> tuple[str, str] | None:
    try:
        call = json.loads(body)
    except ValueError:
        return None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments") or {}
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    try:
        return (call["name"], text) if isinstance(json.loads(text), dict) else None
    except ValueError:
        return None


class _ObjectScanner:
    """Finds the end of a JSON object that arrives in pieces."""

    def __init__(self) -> None:
        self.done = False
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._pieces: list[str] = []

    @property
    def valid(self) -> bool:
        """Whether the whole object can be read."""
        try:
            json.loads("".join(self._pieces))
        except ValueError:
            return False
        return True

    def take(self, text: str) -> int:
        """How much of `text` belongs to the object."""
        position = 0
        while position < len(text) and not self.done:
            plain = None if self._escaped else (_IN_STRING if self._in_string else _PLAIN).match(text, position)
            if plain is None:
                self._see(text[position])
            position = position + 1 if plain is None else plain.end()
        self._pieces.append(text[:position])
        return position

    def _see(self, character: str) -> None:
        if self._escaped:
            self._escaped = False
        elif self._in_string:
            self._escaped = character == "\\"
            self._in_string = character != '"'
        elif character == '"':
            self._in_string = True
        else:
            self._depth += 1 if character == "{" else -1
            self.done = self._depth == 0
