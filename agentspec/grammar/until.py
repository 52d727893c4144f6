"""Free text until a marker, and from there on a grammar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentspec.grammar.base import Cursor, Guide, Mask
from agentspec.grammar.llg import EndCursor, LlgGuide
from agentspec.grammar.masks import all_but
from agentspec.grammar.spelling import Spelling, overlap
from agentspec.segments import Segment

_BLANK = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Opening:
    """A text that begins a call, or a list of them, control tokens by their names.

    Attributes:
        text: It is the call's first part.
        at_start: It counts only where the answer begins, white space aside.
        enforced: Whether what follows is held to the tools. One that is not enforced is read as a call if it turns out
            to be one: for beginnings that mean other things too.
        certain: Whether it can mean nothing else even at the start, so that it is kept out where no calls are allowed.
    """

    text: str
    at_start: bool = False
    enforced: bool = True
    certain: bool = False


class Resumable(Guide, Protocol):
    """A guide that can begin behind a text that is out already."""

    def after(self, text: bytes) -> Cursor | None:
        """The place after `text`, however it was split; None if the output can't begin with it."""


class UntilCall:
    """Free text, at no cost, until a marker is out; then the calls, from the marker on.

    Where no calls are allowed, markers that mean nothing else are kept from being written.

    Args:
        spelling: What markers are looked for in.
        openings: The markers.
        calls: Begins with each of the markers; None: no calls are allowed.
    """

    def __init__(self, spelling: Spelling, openings: Sequence[Opening], calls: LlgGuide | None) -> None:
        self.spelling = spelling
        self._calls = calls
        barred = calls is None
        enforced = [each for each in openings if each.enforced and (each.certain or not (barred and each.at_start))]
        self._anywhere = tuple(opening.text.encode() for opening in enforced if not opening.at_start)
        self._first = tuple(opening.text.encode() for opening in enforced if opening.at_start)
        self._masks: dict[_State, Mask | None] = {}

    def start(self) -> Cursor:
        """The place before the first token."""
        return _Text(self, _State(bool(self._first), b""))

    def after(self, text: bytes) -> Cursor | None:
        """The place after `text`."""
        return self.follow(_State(bool(self._first), b""), text)

    def follow(self, state: _State, text: bytes) -> Cursor | None:
        """The place after `state` and `text`; None if a call begins with it that is not allowed."""
        state, call = self._read(state, text)
        if call is None:
            return _Text(self, state)
        tokens = self.spelling.tokens(call) if self._calls is not None else None
        return self._calls.after_tokens(tokens) if self._calls is not None and tokens is not None else None

    def mask(self, state: _State) -> Mask | None:
        """Every token but those that begin a call as no call goes; None where there are none of those."""
        if state not in self._masks:
            self._masks[state] = self._compute_mask(state)
        return self._masks[state]

    def _read(self, state: _State, text: bytes) -> tuple[_State, bytes | None]:
        """The state after more text, and the call's text so far if one has begun."""
        seen = state.seen + text
        if state.at_start:
            seen = seen.lstrip(_BLANK)
            if seen.startswith(self._first):
                return state, seen
            if any(marker.startswith(seen) for marker in self._first):
                return _State(True, seen), None
        found = [(place, marker) for marker in self._anywhere if (place := seen.find(marker)) >= 0]
        if found:
            return state, seen[min(found)[0] :]
        sizes = (overlap(seen, marker) for marker in self._anywhere)
        size = max(sizes, default=0)
        return _State(False, seen[len(seen) - size :]), None

    def _compute_mask(self, state: _State) -> Mask | None:
        wrong = [token for token in self._closing(state) if self.follow(state, self.spelling.text(token)) is None]
        return all_but(self.spelling.vocabulary, wrong)

    def _closing(self, state: _State) -> list[int]:
        """The tokens that may complete a marker."""
        markers = (*self._anywhere, *(self._first if state.at_start else ()))
        return [token for marker in markers for token in self.spelling.closing(marker, state.seen)]


@dataclass(frozen=True, slots=True)
class _State:
    """Whether only what may begin a marker of the start is out so far, and the text that may turn out to be one."""

    at_start: bool
    seen: bytes


class _Text:
    """A place in free text."""

    __slots__ = ("_following", "_guide", "_state")

    segment = Segment.PROSE
    accepting = True

    def __init__(self, guide: UntilCall, state: _State) -> None:
        self._guide = guide
        self._state = state
        self._following: dict[int, Cursor | None] = {}

    def mask(self) -> Mask | None:
        return self._guide.mask(self._state)

    def forced(self, limit: int) -> tuple[int, ...]:
        return ()

    def advance(self, token: int) -> Cursor | None:
        if token not in self._following:
            self._following[token] = self._after(token)
        return self._following[token]

    def _after(self, token: int) -> Cursor | None:
        vocabulary = self._guide.spelling.vocabulary
        if token in vocabulary.eos:
            return EndCursor(vocabulary)
        if token >= len(vocabulary) and self.mask() is not None:
            return None  # no mask has an id past the vocabulary, and where there is none any id may follow
        following = self._guide.follow(self._state, self._guide.spelling.text(token))
        return self if isinstance(following, _Text) and following._state == self._state else following
