"""Reads an answer character by character: fences, thoughts, calls, JSON, Python expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from agentspec.segments import Mode, Place

if TYPE_CHECKING:
    from agentspec.segmenter import Segmenter

FENCE = "```"

TAIL = 48
"""How many characters are remembered: as many as the longest marker may have."""

LONGEST_NAME = 64
"""How many characters of a key or name are remembered."""

DEEPEST = 64
"""How many open brackets are remembered, the innermost: behind more of them, segments are anyone's guess."""

_SPACE = " \t\r\n"
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-")


class Reader:
    """A place that moves."""

    def __init__(self, rules: Segmenter, place: Place) -> None:
        self.place = place
        self._tail = place.tail  # kept beside the place, which would have to be made anew for each character
        self._rules = rules
        self._calls = rules.calls

    def read(self, characters: str) -> Place:
        """The place behind `characters`."""
        for character in characters:
            self._tail = (self._tail + character)[-TAIL:]
            _READ[self.place.mode](self, character)
        return self.place._replace(tail=self._tail)

    def _ends(self, *markers: str) -> str | None:
        """The marker that the text read so far ends with."""
        for each in markers:
            if each and self._tail.endswith(as_bytes(each)):
                return each
        return None

    def _go(
        self,
        mode: Mode,
        *,
        expects: Literal["key", "value"] = "value",
        key: str = "",
        fenced: bool | None = None,
    ) -> None:
        """Begin another part of the answer."""
        still = self.place.fenced if fenced is None else fenced
        self.place = Place(mode, expects=expects, key=key, fenced=still)

    def _start(self, character: str) -> None:
        if self._opened():
            return
        if character in "{[":
            self._go("call" if any(each.startswith("{") for each in self._calls.opens) else "json")
            self._json(character)
        elif character not in _SPACE:
            self._go("prose")
            self._prose(character)

    def _frame(self, character: str) -> None:
        """What comes before the first call, or the next, where nothing else may come but thoughts."""
        if not self._opened() and self._ends(self._rules.reasoning[0]):
            self._go("reasoning")

    def _prose(self, character: str) -> None:
        if self._opened():
            return
        if character == "`" and self._tail.rpartition("\n")[2].strip() == FENCE:
            self._go("fence", fenced=True)
        elif self._ends(self._rules.reasoning[0]):
            self._go("reasoning")
        elif self._ends(*self._rules.frames):
            self._go("json" if self._rules.document else "start")

    def _end(self, character: str) -> None:
        if not self._opened() and character not in _SPACE:
            self._go("frame" if self._rules.called else "prose")

    def _opened(self) -> bool:
        marker = self._ends(*self._calls.opens)
        if marker is None or (len(marker) == 1 and self.place.mode not in ("start", "frame")):
            return False
        self._go("call", expects="key" if self._calls.python else "value", fenced=False)
        if self._ends(*self._calls.name_after):
            self._go("name")
        inside = marker[marker.find("{") :] if "{" in marker else ""
        for character in inside or ("[" if marker.endswith("[") and not self._calls.python else ""):
            self._json(character)
        return True

    def _reasoning(self, character: str) -> None:
        if self._ends(self._rules.reasoning[1]):
            self._go(self._rules.begins)

    def _fence(self, character: str) -> None:
        if self._opened():
            return
        if character == "\n":
            self._go("json" if self.place.word.strip() in ("json", "jsonc") else "code")
        else:
            self.place = self.place._replace(word=(self.place.word + character)[-LONGEST_NAME:])

    def _code(self, character: str) -> None:
        if self._ends("\n" + FENCE):
            self._go("prose", fenced=False)

    def _call(self, character: str) -> None:
        if self._closed():
            return
        if not self.place.stack and self._ends(*self._calls.name_after):
            self._go("name")
        elif self._calls.raw_value and not self.place.string and self._ends(self._calls.raw_value[0]):
            self._go("raw_name")
        elif self._calls.python:
            self._python(character)
        elif self.place.stack or character == "{" or (character == "[" and not self._calls.name_after):
            self._json(character)

    def _closed(self) -> bool:
        nested = self.place.string or (self._calls.python and self.place.stack)
        closed = not nested and self._ends(*self._calls.closes)
        if closed:
            self._go("end")
        return bool(closed)

    def _name(self, character: str) -> None:
        if character not in _NAME:
            self._go("call", expects="key" if self._calls.python else "value")
            self._call(character)

    def _raw_name(self, character: str) -> None:
        assert self._calls.raw_value is not None, "a raw name follows its marker"
        if self._ends(self._calls.raw_value[1]):
            name = (self.place.word + character).removesuffix(self._calls.raw_value[1])
            self._go("raw", key=name)
        else:
            self.place = self.place._replace(word=(self.place.word + character)[-LONGEST_NAME:])

    def _raw(self, character: str) -> None:
        assert self._calls.raw_value is not None, "a raw value follows its marker"
        if self._ends(self._calls.raw_value[2]):
            self._go("call")

    def _json(self, character: str) -> None:
        place = self.place
        if place.string:
            self._in_string(character)
        elif character in "{[":
            expects: Literal["key", "value"] = "key" if character == "{" else "value"
            self.place = place._replace(stack=(place.stack + character)[-DEEPEST:], expects=expects)
        elif character in "}]":
            self._shut(character)
        elif character == '"':
            self.place = place._replace(string='"', word="")
        elif character == ":":
            self.place = place._replace(expects="value")
        elif character == ",":
            self.place = place._replace(expects="key" if place.stack[-1:] == "{" else "value", word="")
        elif character not in _SPACE:
            self._literal(character)
        elif place.word:
            self._after_value()
        if place.fenced and self._ends("\n" + FENCE):
            self._go("prose", fenced=False)

    def _in_string(self, character: str) -> None:
        place = self.place
        if place.escaped:
            self.place = place._replace(escaped=False, word="")
        elif character == "\\":
            self.place = place._replace(escaped=True)
        elif character != place.string:
            self.place = place._replace(word=(place.word + character)[-LONGEST_NAME:])
        elif place.expects == "key":
            self.place = place._replace(string="", key=place.word, word="", expects="colon")
        else:
            self.place = place._replace(string="")
            self._after_value()

    def _shut(self, character: str) -> None:
        self.place = self.place._replace(stack=self.place.stack[:-1])
        self._after_value()

    def _after_value(self) -> None:
        self.place = self.place._replace(expects="comma", word="")
        if not self.place.stack and not self._calls.closes and self.place.mode == "call":
            self._go("end")
        elif not self.place.stack and self.place.mode == "json" and not self.place.fenced:
            self._go("end")

    def _literal(self, character: str) -> None:
        """A character of a number or of true, false, null; any other shows that this is no JSON."""
        place = self.place
        begins = place.expects == "value" and (place.word or character in "-0123456789tfn")
        if begins:
            self.place = place._replace(word=(place.word + character)[-LONGEST_NAME:])
        elif place.mode == "json":
            self._go("code" if place.fenced else "prose")

    def _python(self, character: str) -> None:
        """A character of `name(key=value, ...)`, behind the opening marker or between two calls."""
        place = self.place
        if place.string:
            self._in_string(character)
        elif character in "\"'":
            self.place = place._replace(string=character, word="")
        elif character in "([{":
            expects: Literal["key", "value"] = "key" if character in "({" else "value"
            self.place = place._replace(stack=(place.stack + character)[-DEEPEST:], expects=expects, word="")
        elif character in ")]}":
            self.place = place._replace(stack=place.stack[:-1], expects="comma", word="")
        elif character in "=:":
            key = place.word if character == "=" else place.key
            self.place = place._replace(expects="value", key=key, word="")
        elif character == ",":
            self.place = place._replace(expects="value" if place.stack[-1:] == "[" else "key", word="")
        elif character not in _SPACE:
            self.place = place._replace(word=(place.word + character)[-LONGEST_NAME:])
        elif character == "\n" and not place.stack:
            self.place = place._replace(expects="key", word="")


_READ: dict[Mode, Callable[[Reader, str], None]] = {
    "start": Reader._start,
    "frame": Reader._frame,
    "prose": Reader._prose,
    "reasoning": Reader._reasoning,
    "fence": Reader._fence,
    "code": Reader._code,
    "call": Reader._call,
    "name": Reader._name,
    "raw_name": Reader._raw_name,
    "raw": Reader._raw,
    "json": Reader._json,
    "end": Reader._end,
}


def as_bytes(marker: str) -> str:
    """A marker as the reader sees text: a character for each byte."""
    return marker if marker.isascii() else marker.encode().decode("latin-1")
