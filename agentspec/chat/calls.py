"""What readers of tool calls share: giving calls out, saying what is none, and calls that are JSON objects."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentspec.chat.base import ToolCallDelta
from agentspec.chat.tape import Steps, Tape, readable
from agentspec.grammar.tools import Tool


class BrokenCall(Exception):
    """A call is malformed, or was cut off. What was read of it is reported, up to the format's next closing marker."""


class NoCall(Exception):
    """What looked like a call is text. What was read of it is given out as that."""


@dataclass(frozen=True, slots=True)
class Written:
    """A call to be written.

    Attributes:
        arguments: A mapping; anything else, such as a broken text in a client's history, is written as it is.
    """

    name: str
    arguments: object

    @property
    def json(self) -> str:
        """The arguments as JSON text."""
        return json.dumps(self.arguments, ensure_ascii=False)


def new_call_id() -> str:
    """An id that no other call has."""
    return f"call_{uuid.uuid4().hex[:24]}"


class Calls:
    """The calls of one answer as they are found.

    Attributes:
        tools: Those that may be called, by name.
        open: Whether a call was begun and not yet ended.
        count: How many were begun.
    """

    def __init__(self, tape: Tape, tools: Sequence[Tool], *, new_id: Callable[[], str] = new_call_id) -> None:
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}
        self.open = False
        self.count = 0
        self._tape = tape
        self._new_id = new_id

    def begin(self, name: str) -> ToolCallDelta:
        """The first delta of a call. From here on it can't turn out to be no call."""
        self.open = True
        self.count += 1
        return ToolCallDelta(self.count - 1, self._new_id(), name)

    def arguments(self, piece: str) -> ToolCallDelta:
        """More of its arguments, as JSON text."""
        return ToolCallDelta(self.count - 1, arguments=piece)

    def end(self) -> None:
        """The call is complete: whatever comes behind it, it can be run."""
        self.open = False
        self._tape.record()

    def whole(self, name: str, arguments: str) -> Steps[None]:
        """A call that is given out at once."""
        yield self.begin(name)
        yield self.arguments(arguments)
        self.end()


_HEAD = re.compile(r'\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)')
_TAIL = re.compile(r'\s*(?:,\s*"[^"\\]*"\s*:\s*(?:"[^"\\]*"|[\w.+-]+)\s*)*\}')


def read_json_call(tape: Tape, calls: Calls, *stops: str, known_only: bool = False) -> Steps[None]:
    """Read one call that is an object with `name` and `arguments` or `parameters`, white space before it included.

    In this order the arguments are given out while they are written; in any other, or within a `function`, at once.

    Args:
        tape: Where the object comes next.
        calls: Takes the call.
        stops: The object ends before these, at the latest.
        known_only: A name that is no tool's makes it text.

    Raises:
        BrokenCall: It is malformed or cut off.
        NoCall: The tool is not known.
    """
    head = yield from _head(tape, *stops)
    if head is None:
        name, arguments = _whole(tape.text, stops)
        _check(name, calls, known_only=known_only)
        tape.take(_object_end(tape.text, stops) or 0)
        yield from calls.whole(name, arguments)
        return
    name = _string(head.group(1))
    _check(name, calls, known_only=known_only)
    tape.take(head.end())
    yield calls.begin(name)
    sound = yield from tape.json(calls.arguments)
    if not sound or (yield from tape.match(_TAIL, *stops)) is None:
        raise BrokenCall
    calls.end()


def read_json_list(tape: Tape, calls: Calls) -> Steps[None]:
    """Read calls that are objects of a JSON list, behind its opening bracket; the closing one is taken if it is there.

    Raises:
        BrokenCall: One is malformed or cut off.
    """
    while True:
        yield from read_json_call(tape, calls)
        yield from tape.space()
        if not (yield from tape.starts(",")):
            break
    yield from tape.starts("]")


def read_arguments(tape: Tape, calls: Calls, name: str) -> Steps[None]:
    """Read the arguments of a call whose name is known: they are a JSON object that comes next.

    Raises:
        BrokenCall: They are malformed or cut off.
    """
    yield calls.begin(name)
    if not (yield from tape.json(calls.arguments)):
        raise BrokenCall
    calls.end()


def _check(name: str, calls: Calls, *, known_only: bool) -> None:
    if known_only and name not in calls.tools:
        raise NoCall


def _head(tape: Tape, *stops: str) -> Steps[re.Match[str] | None]:
    """The usual beginning of a call; None once the object is there without it, or won't come."""
    while True:
        found = _HEAD.match(tape.text[: _stop(tape.text, stops)])
        if found is not None:
            return found
        over = _stop(tape.text, stops) is not None or _object_end(tape.text, stops) is not None
        if over or not (yield from tape.more()):
            return None


def _stop(text: str, stops: Sequence[str]) -> int | None:
    return min((place for stop in stops if (place := text.find(stop)) >= 0), default=None)


def _object_end(text: str, stops: Sequence[str]) -> int | None:
    body = text[: _stop(text, stops)]
    blank = len(body) - len(body.lstrip())
    try:
        return json.JSONDecoder().raw_decode(body, blank)[1] if body[blank:].startswith("{") else None
    except (ValueError, RecursionError):
        return None


def _whole(text: str, stops: Sequence[str]) -> tuple[str, str]:
    end = _object_end(text, stops)
    call = json.loads(text[:end]) if end is not None else None
    found = read_call(call)
    if found is None:
        raise BrokenCall
    return found


def read_call(call: Any) -> tuple[str, str] | None:  # noqa: ANN401 (JSON)
    """Name and arguments of an object that is a call, the arguments as JSON text; None if it is none or unreadable."""
    if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping):
        call = call["function"]
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", call.get("parameters")) or {}
    try:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    except RecursionError:  # what is just not too deep to be read may be too deep to be written
        return None
    return (call["name"], text) if readable(text) and isinstance(json.loads(text), dict) else None


def _string(text: str) -> str:
    try:
        return str(json.loads(text, strict=False))
    except ValueError:
        raise BrokenCall from None
