"""The seam between an output's grammar and everything that decodes under it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agentspec.segments import Segment

Mask = NDArray[np.uint32]
"""Which tokens may come next, one bit each: token `t` may if bit `t % 32` of word `t // 32` is set.

Ids past the last word may not: a model's logits can be wider than its tokenizer's vocabulary.
"""


class Cursor(Protocol):
    """A place in the output, under the grammar. A value: advancing gives another and never changes the one you hold."""

    @property
    def segment(self) -> Segment:
        """The kind of text that the next token belongs to."""

    @property
    def accepting(self) -> bool:
        """Whether the output may end here."""

    def advance(self, token: int) -> Cursor | None:
        """The place after `token`; None exactly if it may not follow. Nothing follows the end token.

        Where there is a mask, `token` may follow if the mask has it: a greedy pick that may follow is taken unmasked.
        """

    def mask(self) -> Mask | None:
        """The tokens that may follow, the end token among them where the output may end; None: every token may."""

    def forced(self, limit: int) -> tuple[int, ...]:
        """At most `limit` tokens that must come next, as the tokenizer would split the forced text; often none."""


class Guide(Protocol):
    """A compiled grammar."""

    def start(self) -> Cursor:
        """The place before the first token."""


class _Free:
    """The cursor of unconstrained text, and its guide."""

    segment = Segment.PROSE
    accepting = True

    def start(self) -> Cursor:
        return self

    def advance(self, token: int) -> Cursor:
        return self

    def mask(self) -> None:
        return None

    def forced(self, limit: int) -> tuple[int, ...]:
        return ()


FREE = _Free()
"""No grammar: any token may follow any other."""
