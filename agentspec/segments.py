"""Where in the output a token stands: what is predictable differs from segment to segment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
