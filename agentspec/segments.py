"""Where in the output a token stands: what is predictable differs from segment to segment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple


class Segment(StrEnum):
    """The kind of text that is being written."""

    PROSE = "prose"
    """Free text: an answer, or whatever is none of the others."""

    REASONING = "reasoning"
    """Thoughts before the answer, between the model's own markers."""

    CALL_FRAME = "call_frame"
    """What a tool call is made of beside names and arguments, its markers included."""

    TOOL_NAME = "tool_name"
    """The name of the tool that is called."""

    JSON_KEY = "json_key"
    """A key of a JSON object, and the punctuation between two values."""

    STRING_VALUE = "string_value"
    """Text inside a string that is a value."""

    NUMBER = "number"
    """A value that is no string: a number, true, false, null."""

    CODE = "code"
    """Code or a diff: inside a fence, or in a string argument whose schema or name says so."""

    END = "end"
    """Behind a finished document or call, where the output ends or the next call begins."""

    __hash__ = str.__hash__  # an Enum's own is slow, and segments are keys many times in each round


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMarks:
    """The texts by which a reader of the output tells the parts of a tool call: how one family of models writes them.

    Inside a call, JSON is read as JSON: its keys, its strings, and the value of a key `name` on the first level as the
    tool's name.

    Attributes:
        opens: Each of these begins a call, or a list of calls, in free text.
        closes: Each of these ends it; what follows is free text again, or the next call.
        name_after: The tool's name stands right behind each of these.
        raw_value: For values that are written as they are: the texts before the value's name, between name and value,
            and after the value, such as `<parameter=`, `>` and `</parameter>`.
        python: Whether a call is a Python expression, `name(key=value)`.
    """

    opens: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()
    name_after: tuple[str, ...] = ()
    raw_value: tuple[str, str, str] | None = None
    python: bool = False


Mode = Literal[
    "start", "frame", "prose", "reasoning", "fence", "code", "call", "name", "raw_name", "raw", "json", "end"
]


class Place(NamedTuple):
    """A place in an answer: a value, the same for the same text however it was cut into tokens.

    Attributes:
        mode: The part of the answer.
        stack: Open brackets, of JSON or of a Python call.
        expects: Inside the innermost bracket: a key, a value, or what follows one.
        string: The quotation mark of the string that is open, if one is.
        key: The last key or argument name of the innermost bracket.
        word: The last characters of what is read as one: a string that may be a key, a name, a fence's language.
        escaped: Whether the next character of the string is.
        tail: The last characters, as many as markers need.
        fenced: Whether a fence is open.
    """

    mode: Mode = "start"
    stack: str = ""
    expects: Literal["key", "colon", "value", "comma"] = "value"
    string: str = ""
    key: str = ""
    word: str = ""
    escaped: bool = False
    tail: str = ""
    fenced: bool = False
