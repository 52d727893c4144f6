"""A block of reasoning before what a guide holds the output to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from agentspec.grammar.base import Cursor, Mask
from agentspec.grammar.llg import EndCursor
from agentspec.grammar.masks import all_but, pack
from agentspec.grammar.spelling import Spelling, overlap
from agentspec.grammar.until import Resumable
from agentspec.segments import Segment


@dataclass(frozen=True, slots=True)
class Reasoning:
    """How a family of models sets its thoughts apart, control tokens by their names.

    Attributes:
        open: Begins them, at the start of the answer.
        close: Ends them.
        between: Each of these may stand between the thoughts and an answer that is held to a grammar.
        anywhere: Whether more thoughts may come behind the first, and later in the answer.
    """

    open: str
    close: str
    between: tuple[str, ...] = ("\n", "\n\n")
    anywhere: bool = False


class Reasoned:
    """Thoughts, which are free, and then what another guide allows; or that at once, without thoughts.

    Args:
        guide: Of the answer.
        spelling: What markers are looked for in.
        reasoning: The markers.
        opened: Whether the prompt ends with the opening marker, so that the output begins within the thoughts.
    """

    def __init__(self, guide: Resumable, spelling: Spelling, reasoning: Reasoning, *, opened: bool = False) -> None:
        self.guide = guide
        self.spelling = spelling
        self.open = reasoning.open.encode()
        self._close = reasoning.close.encode()
        self._between = tuple(text.encode() for text in reasoning.between)
        self._again = reasoning.anywhere
        self._opened = opened
        self._masks: dict[bytes, Mask | None] = {}

    def start(self) -> Cursor:
        """The place before the first token."""
        return _Thought(self, b"") if self._opened else _Start(self, self.guide.start(), b"")

    @cached_property
    def may_end(self) -> bool:
        """Whether the answer may be empty, so that the output may end within the thoughts."""
        return self.guide.start().accepting

    def think(self, seen: bytes) -> Cursor | None:
        """The place after `seen` within the thoughts, which it may close; None if it then goes on as it may not."""
        place = seen.find(self._close)
        if place >= 0:
            return self.between(seen[place + len(self._close) :])
        return _Thought(self, seen[len(seen) - overlap(seen, self._close) :])

    def between(self, seen: bytes) -> Cursor | None:
        """The place after the thoughts and `seen`, which may not follow them: None."""
        if not seen or any(text.startswith(seen) for text in self._between):
            return _Between(self, self._behind(b"") if not seen or seen in self._between else None, seen)
        sizes = [len(text) for text in self._between if seen.startswith(text)]
        return self._behind(seen[max(sizes, default=0) :])

    def thinking(self, seen: bytes) -> Mask | None:
        """What may come within the thoughts, with some first bytes of the closing marker out."""
        if seen not in self._masks:
            closing = self.spelling.closing(self._close, seen)
            wrong = [token for token in closing if self.think(seen + self.spelling.text(token)) is None]
            ends = () if self.may_end else self.spelling.vocabulary.eos
            self._masks[seen] = all_but(self.spelling.vocabulary, [*ends, *wrong])
        return self._masks[seen]

    def leading(self, seen: bytes) -> frozenset[int]:
        """Tokens that go on with a text between thoughts and answer."""
        rests = [text[len(seen) :] for text in self._between if text.startswith(seen) and text != seen]
        along = {token for rest in rests for token in self.spelling.along(rest)}
        return frozenset(token for token in along if self.between(seen + self.spelling.text(token)) is not None)

    def opening(self, seen: bytes) -> frozenset[int]:
        """Tokens that go on with the opening marker."""
        along = self.spelling.along(self.open[len(seen) :])
        return frozenset(token for token in along if self.opens(seen + self.spelling.text(token)) is not None)

    def opens(self, seen: bytes, answer: Cursor | None = None) -> Cursor | None:
        """The place within the thoughts if `seen` begins with their marker, else that of the answer."""
        if self.open.startswith(seen) and seen != self.open:
            return _Start(self, answer, seen)
        return self.think(seen[len(self.open) :]) if seen.startswith(self.open) else answer

    def _behind(self, seen: bytes) -> Cursor | None:
        """The place after `seen`, which comes after thoughts and what may stand between."""
        answer = self.guide.after(seen) if seen else self.guide.start()
        return self.opens(seen, answer) if self._again else answer


class _Thought:
    """A place within the thoughts, with some first bytes of the closing marker out."""

    __slots__ = ("_guide", "_seen")

    segment = Segment.REASONING

    def __init__(self, guide: Reasoned, seen: bytes) -> None:
        self._guide = guide
        self._seen = seen

    @property
    def accepting(self) -> bool:
        return self._guide.may_end

    def mask(self) -> Mask | None:
        return self._guide.thinking(self._seen)

    def forced(self, limit: int) -> tuple[int, ...]:
        return ()

    def advance(self, token: int) -> Cursor | None:
        vocabulary = self._guide.spelling.vocabulary
        if token in vocabulary.eos:
            return EndCursor(vocabulary) if self._guide.may_end else None
        if token >= len(vocabulary) and self.mask() is not None:
            return None
        return self._guide.think(self._seen + self._guide.spelling.text(token))


class _Beside:
    """A place where the answer goes on, if it can, or a text beside it does."""

    __slots__ = ("_answer", "_guide", "_mask", "_other", "_seen")

    segment = Segment.PROSE

    def __init__(self, guide: Reasoned, answer: Cursor | None, seen: bytes) -> None:
        self._guide = guide
        self._answer = answer
        self._seen = seen
        self._other = self._beside()
        self._mask: Mask | None = None

    @property
    def accepting(self) -> bool:
        return self._answer is not None and self._answer.accepting

    def mask(self) -> Mask | None:
        if self._mask is None:
            other = pack(self._guide.spelling.vocabulary, self._other)
            mask = None if self._answer is None else self._answer.mask()
            if self._answer is not None and mask is None:
                return None
            self._mask = other if mask is None else other | mask[: len(other)]
        return self._mask

    def forced(self, limit: int) -> tuple[int, ...]:
        return self._answer.forced(limit) if self._answer is not None and not self._other else ()

    def advance(self, token: int) -> Cursor | None:
        answer = None if self._answer is None else self._answer.advance(token)
        return self._along(token, answer) if token in self._other else answer

    def _beside(self) -> frozenset[int]:
        raise NotImplementedError

    def _along(self, token: int, answer: Cursor | None) -> Cursor | None:
        raise NotImplementedError


class _Start(_Beside):
    """A place before anything but the first bytes of the opening marker."""

    __slots__ = ()

    def _beside(self) -> frozenset[int]:
        return self._guide.opening(self._seen)

    def _along(self, token: int, answer: Cursor | None) -> Cursor | None:
        return self._guide.opens(self._seen + self._guide.spelling.text(token), answer)


class _Between(_Beside):
    """A place after the thoughts, before the answer."""

    __slots__ = ()

    def _beside(self) -> frozenset[int]:
        return self._guide.leading(self._seen)

    def _along(self, token: int, answer: Cursor | None) -> Cursor | None:
        return self._guide.between(self._seen + self._guide.spelling.text(token))
