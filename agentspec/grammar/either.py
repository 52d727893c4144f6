"""A choice between guides, made by what is written."""

from __future__ import annotations

from collections.abc import Sequence

from agentspec.grammar.base import Cursor, Guide, Mask
from agentspec.segments import Segment


class Either:
    """Holds the output to one of some guides: to each of them as long as what is written fits it.

    Args:
        guides: At least one. Where several of them fit a whole output, the first counts.
    """

    def __init__(self, *guides: Guide) -> None:
        self._guides = guides

    def start(self) -> Cursor:
        """The place before the first token."""
        return _EitherCursor([guide.start() for guide in self._guides])


class _EitherCursor:
    """A place under several guides at once. Where only one of them is left, its own cursor takes over."""

    __slots__ = ("_cursors", "_following", "_mask")

    def __init__(self, cursors: Sequence[Cursor]) -> None:
        self._cursors = cursors
        self._mask: Mask | None = None
        self._following: dict[int, Cursor | None] = {}

    @property
    def segment(self) -> Segment:
        return self._cursors[0].segment

    @property
    def accepting(self) -> bool:
        return any(cursor.accepting for cursor in self._cursors)

    def mask(self) -> Mask | None:
        if self._mask is None:
            self._mask = _union([cursor.mask() for cursor in self._cursors])
        return self._mask

    def forced(self, limit: int) -> tuple[int, ...]:
        """What each of the guides forces."""
        first, *others = (cursor.forced(limit) for cursor in self._cursors)
        size = 0
        while size < len(first) and all(other[size : size + 1] == first[size : size + 1] for other in others):
            size += 1
        return first[:size]

    def advance(self, token: int) -> Cursor | None:
        if token not in self._following:
            self._following[token] = self._after(token)
        return self._following[token]

    def _after(self, token: int) -> Cursor | None:
        following = [after for cursor in self._cursors if (after := cursor.advance(token)) is not None]
        return _EitherCursor(following) if len(following) > 1 else following[0] if following else None


def _union(masks: Sequence[Mask | None]) -> Mask | None:
    """What any of the masks allows; they may be of several lengths, where the longer one's last words are empty."""
    union, *others = masks
    for mask in others:
        if union is None or mask is None:
            return None
        size = min(len(union), len(mask))
        union = union[:size] | mask[:size]
    return union
