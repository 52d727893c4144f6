"""A guide whose cursors know where in the output they are."""

from __future__ import annotations

from agentspec.grammar.base import Cursor, Guide, Mask
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
    """

    def __init__(
        self, guide: Guide, vocabulary: Vocabulary, segmenter: Segmenter, *, start: Place | None = None
    ) -> None:
        self.segmenter = segmenter
        self._guide = guide
        self._vocabulary = vocabulary
        self._start = start or segmenter.start()

    def start(self) -> TrackedCursor:
        """The place before the first token."""
        return TrackedCursor(self, self._guide.start(), self._start)

    def text(self, token: int) -> bytes:
        """What a token looks like to the segmenter."""
        tokens = self._vocabulary.tokens
        text = tokens[token] if 0 <= token < len(tokens) else b""
        return text or self._vocabulary.special.get(token, "").encode()


class TrackedCursor:
    """A place under the guide and in the text. Advancing is worked out once for each token."""

    __slots__ = ("_following", "_guide", "inner", "place", "segment")

    def __init__(self, guide: TrackedGuide, inner: Cursor, place: Place) -> None:
        self.inner = inner
        self.place = place
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
        return TrackedCursor(guide, inner, guide.segmenter.advance(self.place, guide.text(token)))
