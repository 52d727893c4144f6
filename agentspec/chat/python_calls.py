"""Calls as Python expressions, `name(key=value, ...)`: written as Python would, and read as JSON arguments."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping

from agentspec.chat.base import Delta
from agentspec.chat.calls import BrokenCall, Calls, NoCall, Written
from agentspec.chat.tape import Steps, Tape, readable

MOST_DEPTH = 64
"""Lists and dicts inside each other that are read."""

_NAME = re.compile(r"\s*(?:([A-Za-z0-9_.:-]+)(\s+[A-Za-z0-9_.:-]|\s*[^\sA-Za-z0-9_.:-])|[^\sA-Za-z0-9_.:-])")
_NUMBER = re.compile(r"-?\d")
_ARGUMENT = re.compile(r"\s*(?:([^\W\d]\w*)\s*=|(\))|[^\s\w])")
_KEY = re.compile(r"\s*([\"'}])")
_AFTER_KEY = re.compile(r"\s*:")
_BEHIND = re.compile(r"\s*([,)\]}])")
_WORD = re.compile(r"([^\s,()\[\]{}:'\"=]+)(?=[\s,()\[\]{}:'\"=])")
_WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_ESCAPE = re.compile(r"\\([\s\S])")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0", "\n": ""}
_DIGITS = {"x": 2, "u": 4, "U": 8}

_Emit = Callable[[str], Delta]


def write_python_call(call: Written) -> str:
    """The call as an expression."""
    arguments = call.arguments if isinstance(call.arguments, Mapping) else {"arguments": call.arguments}
    return f"{call.name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def read_python_call(tape: Tape, calls: Calls, *, known_only: bool = False) -> Steps[None]:
    """Read one call, white space before it included. Strings are given out while they are written.

    Args:
        tape: Where it comes next.
        calls: Takes the call.
        known_only: What does not begin like a call, or like that of a tool, is text.

    Raises:
        BrokenCall: It is malformed or cut off.
        NoCall: It is text.
    """
    head = yield from tape.match(_NAME, take=False)
    name = head.group(1) if head is not None and (head.group(2) or "").strip() == "(" else ""
    if known_only and name not in calls.tools:
        raise NoCall
    if head is None or not name:
        raise BrokenCall
    tape.take(head.end())
    yield calls.begin(name)
    before = "{"
    while (key := (yield from _argument(tape))) is not None:
        yield calls.arguments(f"{before}{json.dumps(key, ensure_ascii=False)}: ")
        yield from _value(tape, calls.arguments, 0)
        before = ", "
        if (yield from _behind(tape, ")")):
            break
    yield calls.arguments("{}" if before == "{" else "}")
    calls.end()


def _argument(tape: Tape) -> Steps[str | None]:
    """The name of the next argument; None where the call ends instead."""
    found = yield from tape.match(_ARGUMENT)
    if found is None or not (found.group(1) or found.group(2)):
        raise BrokenCall
    name: str | None = found.group(1)
    return name


def _behind(tape: Tape, close: str) -> Steps[bool]:
    """Take what stands behind a value; whether it was the closing bracket."""
    found = yield from tape.match(_BEHIND)
    if found is None or found.group(1) not in (",", close):
        raise BrokenCall
    return found.group(1) == close


def _value(tape: Tape, emit: _Emit, depth: int) -> Steps[None]:
    yield from tape.space()
    begins = tape.text[:1]
    if depth > MOST_DEPTH:
        raise BrokenCall
    if begins and begins in "\"'":
        yield from _text(tape, emit)
    elif begins and begins in "[(":
        yield from _list(tape, emit, depth)
    elif begins == "{":
        yield from _dict(tape, emit, depth)
    else:
        found = yield from tape.match(_WORD)
        if found is None:
            raise BrokenCall
        yield emit(_word(found.group(1)))


def _word(word: str) -> str:
    """A constant or a number in JSON."""
    if word in _WORDS:
        return _WORDS[word]
    if _NUMBER.match(word) and readable(word):
        return word
    try:
        return json.dumps(ast.literal_eval(word), allow_nan=False)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise BrokenCall from None


def _list(tape: Tape, emit: _Emit, depth: int) -> Steps[None]:
    close = "]" if tape.take(1) == "[" else ")"
    before = "["
    while True:
        yield from tape.space()
        if tape.text.startswith(close):
            tape.take(1)
            break
        yield emit(before)
        yield from _value(tape, emit, depth + 1)
        before = ", "
        if (yield from _behind(tape, close)):
            break
    yield emit("[]" if before == "[" else "]")


def _dict(tape: Tape, emit: _Emit, depth: int) -> Steps[None]:
    tape.take(1)
    before = "{"
    while True:
        found = yield from tape.match(_KEY, take=False)
        if found is None:
            raise BrokenCall
        tape.take(found.start(1))
        if found.group(1) == "}":
            tape.take(1)
            break
        yield emit(before)
        yield from _text(tape, emit)
        if (yield from tape.match(_AFTER_KEY)) is None:
            raise BrokenCall
        yield emit(": ")
        yield from _value(tape, emit, depth + 1)
        before = ", "
        if (yield from _behind(tape, "}")):
            break
    yield emit("{}" if before == "{" else "}")


def _text(tape: Tape, emit: _Emit) -> Steps[None]:
    """A string in one or three quotation marks."""
    mark = tape.text[0]
    close = yield from tape.starts(mark * 3, mark)
    yield emit('"')
    while True:
        end = yield from tape.show(lambda text: emit(_inside(text)), close, "\\")
        if end == "\\":
            yield emit(_inside((yield from _escaped(tape))))
        elif end:
            tape.take(len(end))
            yield emit('"')
            return
        else:
            raise BrokenCall


def _escaped(tape: Tape) -> Steps[str]:
    """Take an escape; what it stands for. One that stands for nothing is the text it is, as in Python."""
    found = yield from tape.match(_ESCAPE)
    if found is None:
        raise BrokenCall
    kind = found.group(1)
    if kind not in _DIGITS:
        return _ESCAPES.get(kind, kind if kind in "\\'\"" else f"\\{kind}")
    digits = yield from tape.match(re.compile(rf"[\s\S]{{{_DIGITS[kind]}}}"), take=False)
    if digits is None:
        raise BrokenCall
    if not re.fullmatch("[0-9a-fA-F]+", digits.group()) or int(digits.group(), 16) > 0x10FFFF:
        return f"\\{kind}"
    return chr(int(tape.take(_DIGITS[kind]), 16))


def _inside(text: str) -> str:
    """Text as it stands inside a JSON string. Halves of a character, which no text may hold, by their numbers."""
    return "".join(
        f"\\u{ord(part):04x}" if "\ud800" <= part <= "\udfff" else json.dumps(part, ensure_ascii=False)[1:-1]
        for part in re.split("([\ud800-\udfff])", text)
    )
