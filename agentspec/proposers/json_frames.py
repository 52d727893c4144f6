"""Reads JSON wherever it stands in a conversation, and counts by key what stood between two values."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agentspec.grammar.vocabulary import Vocabulary

_OPEN = re.compile(rb"[\[{]")
_LEXEME = re.compile(rb'\s*(?:(")|([-+.\w]+)|([{}\[\]:,])|\S)')
_IN_STRING = re.compile(rb'(?:[^"\\\n\0]|\\[^\n\0])*')
_LITERALS = (b"true", b"false", b"null")
_STRING, _WORD, _MARK = 1, 2, 3
_OBJECT, _COMMA = ord("{"), ord(",")
_BORDER = b"\0"
_DEEPEST = 64
_NEW_LENGTH = 2.0
"""Stands for lengths that a value did not have yet, beside those that were counted."""
_SHORT, _LONGER = 3.0, 0.5
"""Such a value has about so many tokens more, and so many more for each that it has: long ones tend to go on."""

Spot = tuple[bytes, bytes, bool]
"""Which value: the key of the object or list around it, its own key (empty in a list), and whether it is a string."""


class Frame(NamedTuple):
    """What stood between two values, the quotation marks of strings included.

    Attributes:
        text: All of it.
        tokens: Those that lie inside it.
        starts: Where in the text each of them starts.
    """

    text: bytes
    tokens: tuple[int, ...]
    starts: tuple[int, ...]

    def behind(self, written: int, vocabulary: Vocabulary) -> tuple[int, ...]:
        """Tokens of what is left behind the first `written` bytes: as they stood there, from the first that fits.

        A token at an edge holds a piece of the value as well. What of it lies inside is split anew; but white space at
        the end is left to the next value, which may have it in its first token.
        """
        first = bisect_left(self.starts, written)
        head = self.text[written : self.starts[first]] if first < len(self.starts) else self.text[written:].rstrip(b" ")
        return (*(vocabulary.encode(head.decode(errors="replace")) if head else ()), *self.tokens[first:])


class Gap(NamedTuple):
    """Where a text stands between two values, or in one that may be over.

    Attributes:
        frames: What followed such a value before, and how often.
        written: What stands behind the value already.
        ended: The chance that the value is over.
    """

    frames: Mapping[Frame, int]
    written: bytes
    ended: float


class _State:
    """How far a reader is."""

    __slots__ = ("at", "ended", "expects_key", "in_string", "key", "spot", "stack")

    def __init__(self) -> None:
        self.at = 0  # the first byte that is not read
        self.in_string = 0  # the first byte that may end the string there
        self.reset()

    def reset(self) -> None:
        """No JSON is open."""
        self.stack: list[tuple[int, bytes]] = []  # each open bracket, with the key of what it encloses
        self.expects_key = False
        self.key = b""
        self.spot: Spot | None = None  # of the last value
        self.ended = 0  # where it did

    def copy(self) -> _State:
        """Another that moves on its own."""
        new = _State.__new__(_State)
        new.at, new.in_string, new.stack, new.expects_key = self.at, self.in_string, list(self.stack), self.expects_key
        new.key, new.spot, new.ended = self.key, self.spot, self.ended
        return new

    def value(self, string: bool) -> Spot:
        """The spot of the value that comes now."""
        bracket, outer = self.stack[-1]
        return (outer, self.key if bracket == _OBJECT else b"", string)

    def punctuation(self, character: int) -> None:
        """Take an opening or closing bracket, a colon or a comma."""
        if character in b"{[":
            if len(self.stack) == _DEEPEST:
                self.reset()
            outer = self.key or (self.stack[-1][1] if self.stack else b"")
            self.stack.append((character, outer))
            self.expects_key, self.key = character == _OBJECT, b""
        elif character in b"}]":
            self.stack.pop()
            self.expects_key, self.key = False, b""
        else:
            self.expects_key = character == _COMMA and self.stack[-1][0] == _OBJECT


class FrameReader:
    """Counts frames in a growing sequence of tokens.

    Args:
        vocabulary: The text of each token; control tokens part the text.
        start: How many tokens are left out at the beginning.
        prompt_length: What stands behind these tokens counts for more.
    """

    def __init__(self, vocabulary: Vocabulary, *, start: int, prompt_length: int) -> None:
        self._vocabulary = vocabulary
        self._prompt_length = prompt_length - start
        self._start = start
        self._text = bytearray()
        self._tokens: list[int] = []
        self._ends: list[int] = []
        self._state = _State()
        self._frames: tuple[defaultdict[Spot | None, Counter[Frame]], ...] = (
            defaultdict(Counter),
            defaultdict(Counter),
        )
        self._lengths: defaultdict[Spot, Counter[int]] = defaultdict(Counter)

    def read(self, tokens: Sequence[int], size: int) -> None:
        """Take up the first `size` tokens, those that are known already not again."""
        known = self._start + len(self._tokens)
        if size > known:
            self._append(tokens[known:size])
            self._run(self._state, counts=True)

    def gap(self, guess: Sequence[int]) -> Gap | None:
        """Where the text stands if `guess` follows it; None where no value is over, or nothing is known of it."""
        size, length = len(self._tokens), len(self._text)
        state = self._state
        if guess:
            state = state.copy()
            self._append(guess)
            self._run(state, counts=False)
        gap = self._gap(state) if state.stack else None
        if guess:
            del self._tokens[size:], self._ends[size:], self._text[length:]
        return gap

    def _append(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self._text += self._vocabulary.text(token) or _BORDER
            self._ends.append(len(self._text))
        self._tokens += tokens

    def _run(self, state: _State, *, counts: bool) -> None:
        """Read what is complete."""
        text, end = self._text, len(self._text)
        while state.at < end:
            if not state.stack and not self._opens(state):
                return
            found = _LEXEME.match(text, state.at)
            if found is None:
                return  # white space
            kind, start, stop = found.lastindex, found.start(found.lastindex or 0), found.end()
            if kind == _STRING:
                stop = self._string_end(state, stop)
                if stop >= end - (text[stop : stop + 1] == b"\\"):
                    return  # it goes on
                kind = kind if text[stop : stop + 1] == b'"' else None
            elif kind == _WORD and stop == end:
                return  # it may go on
            if kind is None:
                state.reset()
            elif kind == _MARK:
                state.punctuation(text[start])
                if counts and not state.stack:
                    self._count(state.spot, state.ended, stop)
            elif state.expects_key:
                state.key = bytes(text[start + 1 : stop]) if kind == _STRING else b""
            else:
                self._value(state, start + (kind == _STRING), stop, counts=counts)
            state.at = stop + (kind == _STRING)

    def _string_end(self, state: _State, start: int) -> int:
        """The first byte that is not inside the string; what of a long one was read before is not read again."""
        inside = _IN_STRING.match(self._text, max(start, state.in_string))
        state.in_string = inside.end() if inside else start
        return state.in_string

    def _opens(self, state: _State) -> bool:
        """Go to where the next JSON may begin."""
        opened = _OPEN.search(self._text, state.at)
        if opened is None:
            state.at = len(self._text)
            return False
        state.reset()
        state.at = state.ended = opened.start()
        return True

    def _value(self, state: _State, start: int, end: int, *, counts: bool) -> None:
        """Read a string, number or literal that is a value."""
        spot = state.value(self._text[end : end + 1] == b'"')
        if counts:
            self._count(state.spot, state.ended, start)
            self._lengths[spot][self._size(start, end)] += 1
        state.spot, state.ended = spot, end

    def _count(self, spot: Spot | None, start: int, end: int) -> None:
        first, last = bisect_left(self._ends, start) + 1, bisect_right(self._ends, end)
        starts = tuple(begins - start for begins in self._ends[first - 1 : last - 1])
        frame = Frame(bytes(self._text[start:end]), tuple(self._tokens[first:last]), starts)
        self._frames[last > self._prompt_length][spot][frame] += 1

    def _size(self, start: int, end: int) -> int:
        """How many tokens a value has."""
        return bisect_left(self._ends, end) - bisect_left(self._ends, start)

    def _gap(self, state: _State) -> Gap | None:
        text, spot, ended = self._text, state.spot, 1.0
        begun = _LEXEME.match(text, state.at)  # what is not complete
        if begun is None or state.expects_key:
            written = bytes(text[state.ended :])
        elif text.endswith(b"\\"):
            return None
        else:
            start, string = begun.start(begun.lastindex or 0), begun.lastindex == _STRING
            spot, written = state.value(string), b""
            if text[start:] not in _LITERALS:
                ended = self._ended(spot, self._size(start + string, len(text)))
        frames = self._frames[1].get(spot) or self._frames[0].get(spot)
        return Gap(frames, written, ended) if frames else None

    def _ended(self, spot: Spot, size: int) -> float:
        """The chance that a value of so many tokens is over, by how long those at its spot were."""
        lengths = self._lengths[spot]
        longer = sum(count for length, count in lengths.items() if length >= size)
        return (lengths[size] + _NEW_LENGTH / (_SHORT + _LONGER * size)) / (longer + _NEW_LENGTH)
