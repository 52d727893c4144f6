"""Where a target picks: a place of a request's output, with all that the pick there depends on beside the logits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from agentspec.config import SamplingParams
from agentspec.grammar.base import Cursor

DEAD_END: Final = -1
"""The pick where the grammar and the parameters together leave no token at all."""

WORD: Final = 0xFFFF_FFFF_FFFF_FFFF
GOLDEN: Final = 0x9E37_79B9_7F4A_7C15


class History:
    """The tokens before the next place of one request, counted as the penalties want them."""

    def __init__(self, prompt: Sequence[int]) -> None:
        self._seen = set(prompt)
        self._written: Counter[int] = Counter()
        self._tokens = list(prompt)

    def append(self, token: int) -> None:
        """The token was written."""
        self._seen.add(token)
        self._written[token] += 1
        self._tokens.append(token)

    def seen(self, path: Sequence[int]) -> list[int]:
        """Distinct tokens of prompt, output and `path`."""
        return list(self._seen.union(path))

    def written(self, path: Sequence[int]) -> Counter[int]:
        """How often each token was written, prompt left out, `path` included."""
        return self._written + Counter(path) if path else self._written

    def ends_with(self, tokens: Sequence[int], path: Sequence[int]) -> bool:
        """Whether the tokens before the place end with `tokens`."""
        size = len(tokens)
        return not size or [*self._tokens[-size:], *path][-size:] == list(tokens)

    @property
    def length(self) -> int:
        """How many tokens were written."""
        return self._written.total()


@dataclass(frozen=True, slots=True)
class Place:
    """One place of one request's output at which the target picks.

    Attributes:
        params: How to pick.
        seed: Of the noise.
        position: Index of the token to be picked in the whole sequence, prompt included.
        cursor: The grammar's state at the place.
        history: What came before, without `path`; None: processors that need it are left out (a draft model's picks).
        path: Tokens of the draft between the last known token and the place.
        eos: Ids that end the output.
    """

    params: SamplingParams
    seed: int
    position: int
    cursor: Cursor
    history: History | None = None
    path: Sequence[int] = field(default=())
    eos: frozenset[int] = frozenset()


def branch_seed(seed: int, index: int) -> int:
    """The seed of the `index`-th of several answers to one prompt; the first has the seed itself."""
    return seed if index == 0 else mix((seed + GOLDEN * index) & WORD)


def mix(word: int) -> int:
    """The splitmix64 finaliser."""
    word = ((word ^ (word >> 30)) * 0xBF58_476D_1CE4_E5B9) & WORD
    word = ((word ^ (word >> 27)) * 0x94D0_49BB_1331_11EB) & WORD
    return word ^ (word >> 31)
