"""The text of an answer while it arrives, for readers that are written as if it were all there.

A reader is a generator: what it yields is a delta, or None where it waits for more text. What it gives in all can then
only depend on the text, not on the cuts, as long as it decides nothing by where the text happens to end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator
from typing import TypeVar

from agentspec.chat.base import Delta
from agentspec.chat.stream import overlap

_T = TypeVar("_T")
Steps = Generator[Delta | None, None, _T]
"""Deltas, None for "wait for more", and at last a value: to be asked with `yield from`."""

_PLAIN = re.compile(r'[^"{}\[\]]+')
_IN_STRING = re.compile(r'[^"\\]+')


class Tape:
    """Text that was fed and not yet read.

    Attributes:
        text: It.
        ended: Whether nothing more will come.
        cut: Whether what may begin a marker at the end does, but for a limit.
        recorded: What was taken since `record`.
    """

    def __init__(self) -> None:
        self.text = ""
        self.ended = False
        self.cut = False
        self.recorded = ""

    def record(self) -> None:
        """Begin a new record of what is taken."""
        self.recorded = ""

    def take(self, size: int) -> str:
        """The next characters, which must be there."""
        taken, self.text = self.text[:size], self.text[size:]
        self.recorded += taken
        return taken

    def more(self) -> Steps[bool]:
        """Wait for more text; False if there is none."""
        if self.ended:
            return False
        yield None
        return True

    def space(self) -> Steps[None]:
        """Take white space, all of it."""
        while True:
            self.take(len(self.text) - len(self.text.lstrip()))
            if self.text or not (yield from self.more()):
                return

    def starts(self, *texts: str) -> Steps[str]:
        """Take the first of these texts that comes next; the empty text if none of them does."""
        while True:
            undecided = [text for text in texts if text.startswith(self.text) or self.text.startswith(text)]
            if undecided and self.text.startswith(undecided[0]):
                return self.take(len(undecided[0]))
            if not undecided or not (yield from self.more()):
                found = next((text for text in undecided if self.text.startswith(text)), "")
                taken = self.take(len(self.text) if undecided and self.cut and not found else len(found))
                return taken if found else ""

    def match(self, pattern: re.Pattern[str], *stops: str, take: bool = True) -> Steps[re.Match[str] | None]:
        """What matches the pattern here, before any of `stops`; None if nothing will.

        Args:
            pattern: Must end where more text can't change the match: not with a repetition or an optional part.
            stops: Where one of these comes first, nothing matches any more. They are not taken.
            take: Whether what matches is taken.
        """
        while True:
            stop = min((place for text in stops if (place := self.text.find(text)) >= 0), default=None)
            # What may begin a stop is no text yet: a pattern that looks ahead would see it or not, as the text is cut.
            held = 0 if self.ended or stop is not None else self._held(stops)
            found = pattern.match(self.text[: len(self.text) - held if stop is None else stop])
            if found is not None:
                if take:
                    self.take(found.end())
                return found
            if stop is not None or not (yield from self.more()):
                return None

    def until(self, *ends: str) -> Steps[tuple[str, str]]:
        """Take the text before the first of `ends` and that itself; all there is and the empty text if none comes."""
        parts: list[str] = []
        while True:
            end = self._first(ends)
            if end is not None:
                parts.append(self.take(end[0]))
                return "".join(parts), self.take(len(end[1]))
            parts.append(self.take(len(self.text) - self._held(ends)))
            if not (yield from self.more()):
                return "".join(parts) + self.take(len(self.text)), ""

    def show(self, delta: Callable[[str], Delta], *ends: str) -> Steps[str]:
        """Give out text as it comes, up to the first of `ends`, which is not taken; the empty text if none comes.

        Of two that begin at the same place, the longer one counts.
        """
        while True:
            end = self._first(ends)
            size = end[0] if end is not None else len(self.text) - (self._held(ends) if self._open else 0)
            if size:
                yield delta(self.take(size))
            if end is not None:
                return end[1]
            if not (yield from self.more()) and (self.cut or not self.text):
                return ""

    def json(self, delta: Callable[[str], Delta]) -> Steps[bool]:
        """Give out a JSON object or list as it comes; whether it came whole, and can be read."""
        scanner, pieces = _Scanner(), list[str]()
        while True:
            piece = self.take(scanner.scan(self.text))
            if piece:
                pieces.append(piece)
                yield delta(piece)
            if scanner.done:
                return readable("".join(pieces))
            if not self.text and not (yield from self.more()):
                return False

    @property
    def _open(self) -> bool:
        """Whether what may begin a marker at the end is held back."""
        return self.cut or not self.ended

    def _first(self, ends: tuple[str, ...]) -> tuple[int, str] | None:
        """The first of `ends` that is there, unless a longer one that begins as early may still come."""
        found = [(place, -len(end), end) for end in ends if (place := self.text.find(end)) >= 0]
        if not found:
            return None
        place, _, end = min(found)
        rest = self.text[place:]
        waits = self._open and any(len(other) > len(rest) and other.startswith(rest) for other in ends)
        earlier = len(self.text) - (self._held(ends) if self._open else 0)
        return None if waits or earlier < place else (place, end)

    def _held(self, ends: tuple[str, ...]) -> int:
        """How many of the last characters may turn out to begin one of `ends`."""
        return max((overlap(self.text, end) for end in ends), default=0)


def readable(text: str) -> bool:
    """Whether it is JSON, and not nested too deep to be read."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


class _Scanner:
    """Finds the end of a JSON object or list that arrives in pieces."""

    def __init__(self) -> None:
        self.done = False
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def scan(self, text: str) -> int:
        """How much of `text` belongs to it."""
        position = 0
        while position < len(text) and not self.done:
            plain = None if self._escaped else (_IN_STRING if self._in_string else _PLAIN).match(text, position)
            if plain is None:
                self._see(text[position])
            position = position + 1 if plain is None else plain.end()
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
            self._depth += 1 if character in "{[" else -1
            self.done = self._depth == 0
