"""A guide whose cursors know where in the output they are, and what the text looks like to follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from agentspec.errors import GrammarError
from agentspec.grammar.base import Cursor, Guide, Mask
from agentspec.grammar.llg import EndCursor, LlgCursor, LlgGuide
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.segmenter import Segmenter
from agentspec.segments import Place, Segment


class TrackedGuide:
    """Follows another guide, enforced or `FREE`, and reads what is written beside it.

    Args:
        guide: What the output is held to.
        vocabulary: The text of each token. Control tokens are read by their names.
        segmenter: Tells the segments.
        start: Where the answer begins, if the prompt has begun it.
        guesses: What an object in text that nothing holds may turn out to be, such as a tool call that is written
            without its marker: drafts follow the first of them that fits what is written, and no token is held to it.
    """

    def __init__(
        self,
        guide: Guide,
        vocabulary: Vocabulary,
        segmenter: Segmenter,
        *,
        start: Place | None = None,
        guesses: Sequence[LlgGuide] = (),
    ) -> None:
        self.segmenter = segmenter
        self._guesses = tuple(guesses)
        self._guide = guide
        self.vocabulary = vocabulary
        self._start = start or segmenter.start()

    def start(self) -> TrackedCursor:
        """The place before the first token."""
        return TrackedCursor(self, self._guide.start(), self._start)

    def guessed(self, before: TrackedCursor, token: int, inner: Cursor, place: Place) -> tuple[Cursor, ...]:
        """The guesses that still fit after `token`, which leads to `inner` and `place`; none where a mask holds it."""
        begins = place.stack == "{" and not before.place.stack
        if not self._guesses or not (begins or (place.stack and before.guesses)) or is_held(inner):
            return ()
        begun = self.vocabulary.spelled(token)
        steps: list[Callable[[], Cursor | None]] = (
            [partial(guess.after, begun[begun.find(b"{") :]) for guess in self._guesses]
            if begins
            else [partial(guess.advance, token) for guess in before.guesses]
        )
        return tuple(guess for step in steps if (guess := _tried(step)) is not None)


def _tried(step: Callable[[], Cursor | None]) -> Cursor | None:
    """Where a guess leads; None, too, where its grammar can't go on: nothing is held to it, so that is no failure."""
    try:
        return step()
    except GrammarError:
        return None


class TrackedCursor:
    """A place under the guide and in the text. Advancing is worked out once for each token.

    Attributes:
        inner: The place under the guide alone.
        place: The place in the text.
        guesses: Places under grammars that the text fits so far, though nothing holds it to them.
    """

    __slots__ = ("_following", "_guide", "guesses", "inner", "place", "segment")

    def __init__(self, guide: TrackedGuide, inner: Cursor, place: Place, guesses: tuple[Cursor, ...] = ()) -> None:
        self.inner = inner
        self.place = place
        self.guesses = guesses
        self.segment: Segment = guide.segmenter.segment(place)
        self._guide = guide
        self._following: dict[int, TrackedCursor | None] = {}

    @property
    def accepting(self) -> bool:
        """Whether the output may end here."""
        return self.inner.accepting

    def mask(self) -> Mask | None:
        """The tokens that may follow; None: every token may."""
        return self.inner.mask()

    def forced(self, limit: int) -> tuple[int, ...]:
        """At most `limit` tokens that must come next."""
        return self.inner.forced(limit)

    def advance(self, token: int) -> TrackedCursor | None:
        """The place after `token`; None if it may not follow."""
        if token not in self._following:
            self._following[token] = self._after(token)
        return self._following[token]

    def _after(self, token: int) -> TrackedCursor | None:
        inner = self.inner.advance(token)
        if inner is None:
            return None
        guide = self._guide
        place = guide.segmenter.advance(self.place, guide.vocabulary.spelled(token))
        return TrackedCursor(guide, inner, place, guide.guessed(self, token, inner, place))


def is_held(cursor: Cursor) -> bool:
    """Whether a mask holds what comes next. A compiled grammar's always does: none is made just to see that."""
    return isinstance(cursor, LlgCursor | EndCursor) or cursor.mask() is not None


def likely(cursor: Cursor) -> Cursor:
    """The cursor to guess by: what holds the text, or what it looks like to follow where nothing does."""
    return cursor.guesses[0] if isinstance(cursor, TrackedCursor) and cursor.guesses else cursor
