"""The seam between the engine and a model: rows of tokens in, logits out, K/V kept in slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agentspec.draft import EMPTY, Draft

if TYPE_CHECKING:
    from torch import Tensor


class Slot(Protocol):
    """One sequence's place in the K/V cache.

    Keys and values of a forward land behind the committed tokens and stay uncommitted until `commit`; what is not
    committed never was.
    """

    @property
    def tokens(self) -> Sequence[int]:
        """The committed tokens, whose keys and values are in the cache."""

    def sync(self, tokens: Sequence[int]) -> Sequence[int]:
        """Keep the longest prefix shared with `tokens` and return the rest, which is pending (never empty)."""

    def commit(self, row: Row, path: Sequence[int]) -> None:
        """Keep the row's pending tokens and the accepted draft nodes in `path`, in that order, after a forward."""

    def fork(self, length: int | None = None) -> Slot:
        """An independent copy of the first `length` committed tokens (all of them by default)."""

    def close(self) -> None:
        """Free the memory. Closing twice is harmless."""


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence's part of a forward.

    Attributes:
        slot: Where its committed tokens are.
        pending: Known tokens that are not in the cache yet, at least one: prompt, tool result, last pick.
        draft: Guesses that follow the last pending token.
    """

    slot: Slot
    pending: Sequence[int]
    draft: Draft = EMPTY

    @property
    def width(self) -> int:
        """How many tokens go through the model."""
        return len(self.pending) + len(self.draft)


@dataclass(frozen=True, slots=True)
class Output:
    """What a forward gives.

    Attributes:
        logits: `[sum(1 + len(row.draft)), vocab]` float32, rows in order: for each the place after its last pending
            token, then the place after each draft node. Columns may be more than the tokenizer's tokens.
    """

    logits: Tensor


class TargetModel(Protocol):
    """A decoder-only model that can verify a tree of guesses in one forward."""

    @property
    def vocab_size(self) -> int:
        """Columns of the logits and rows of the embedding; a larger token id can't go through the model."""

    @property
    def context_length(self) -> int:
        """The most tokens that a sequence may hold."""

    @property
    def eos(self) -> frozenset[int]:
        """Ids that end a sequence."""

    def open(self) -> Slot:
        """A new, empty slot."""

    def forward(self, rows: Sequence[Row]) -> Output:
        """Run the rows' pending tokens and drafts through the model, in one ragged batch."""
