"""The text that a caller expects as the answer, and how far the answer has followed it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agentspec.grammar.vocabulary import Vocabulary
from agentspec.proposers.follow import Place
from agentspec.proposers.index import SuffixIndex
from agentspec.proposers.respelled import BORDER, escaped, respelled

SOURCE = "prediction"
_MOST = 8
_TRUST = 2.0
_FARTHER = 0.4
_LONG = 16
_START_LENGTH = 2
_FOLLOWED_LENGTH = 2


class Expected:
    """Finds where an answer stands in the expected text, as it is and as it is written within a JSON string.

    An answer that leaves the text is found again where its last tokens stand in it; of several such places that agree
    as far, the nearest behind the last one counts most. Until the answer first comes upon the text, its beginning is
    expected.

    Args:
        prediction: Tokens of the expected text.
        vocabulary: Of these tokens.
    """

    def __init__(self, prediction: Sequence[int], vocabulary: Vocabulary) -> None:
        spelled = [[*prediction, BORDER], respelled(vocabulary, prediction, escaped)]
        self._texts = [SuffixIndex(tokens) for tokens in spelled]
        self._next = [0, 0]

    def read(self, tail: Sequence[int]) -> None:
        """See how far the answer is, from its last tokens."""
        for number, index in enumerate(self._texts):
            places = self._found(index, self._next[number], tail)
            best = max(places, key=lambda place: place.weight, default=None)
            if best is not None and best.length >= _FOLLOWED_LENGTH:
                self._next[number] = best.at

    def places(self, tail: Sequence[int]) -> list[Place]:
        """Where the answer may go on behind its last tokens, some of which may be guessed."""
        places: list[Place] = []
        for start, index in zip(self._next, self._texts, strict=True):
            places += self._found(index, start, tail)
            if not any(self._next):
                places.append(Place(_TRUST * 2.0**_START_LENGTH, _START_LENGTH, index.tokens, 0, SOURCE))
        return places

    def _found(self, index: SuffixIndex, start: int, tail: Sequence[int]) -> list[Place]:
        found = sorted(index.matches(tail, _MOST), key=lambda match: (match[1] < start, abs(match[1] - start)))
        places: list[Place] = []
        nearer: Counter[int] = Counter()
        for length, at in found:
            weight = _TRUST * 2.0 ** min(length, _LONG) * _FARTHER ** nearer[length]
            nearer[length] += 1
            places.append(Place(weight, length, index.tokens, at, SOURCE))
        return places
