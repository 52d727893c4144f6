"""How often tokens stood behind others in one conversation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence


class Habits:
    """What stood behind each pair of tokens, and how often each token stood anywhere, updated as the text grows."""

    def __init__(self) -> None:
        self._behind: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        self._anywhere: Counter[int] = Counter()
        self._size = 2

    def extend(self, tokens: Sequence[int], size: int) -> None:
        """Count the first `size` tokens; those that were counted before are not counted again."""
        if size > self._size:
            new = list(tokens[self._size - 2 : size])
            self._anywhere.update(new[2:])
            for first, second, third in zip(new, new[1:], new[2:], strict=False):
                self._behind[first, second][third] += 1
            self._size = size

    def behind(self, before: tuple[int, ...]) -> Mapping[int, int]:
        """How often each token stood behind these two."""
        return self._behind.get(before, {})

    def shares(self, before: tuple[int, ...], tokens: Sequence[int]) -> dict[int, float]:
        """The chance of each of the tokens, one of which comes next: by what stood behind the two before, if known."""
        behind = self.behind(before)
        counts = behind if any(token in behind for token in tokens) else self._anywhere
        total = sum(counts.get(token, 0) for token in tokens)
        return {token: (counts.get(token, 0) + 1 / len(tokens)) / (total + 1) for token in tokens}
