"""Where keys and values are kept: each slot owns its columns, nothing is concatenated per token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from agentspec.draft import ROOT
from agentspec.errors import PromptTooLongError
from agentspec.models.base import Row
from agentspec.models.prefix import shared_prefix

_FIRST_CAPACITY = 256


@dataclass(frozen=True, slots=True)
class LayerShape:
    """What one attention layer keeps for each token, and how far back it looks.

    Attributes:
        heads: Key/value heads.
        key_size: Numbers in a key of one head.
        value_size: Numbers in a value of one head.
        window: The most positions that a token sees, itself included; None: all.
        dtype: Of keys and values.
        device: Where the layer runs.
    """

    heads: int
    key_size: int
    value_size: int
    window: int | None
    dtype: torch.dtype
    device: torch.device


class Columns:
    """Keys and values of one sequence, a pair `[heads, capacity, size]` for each layer.

    Column and position are the same for committed tokens. Columns behind those hold whatever the last forward left.
    """

    def __init__(self, layers: Sequence[LayerShape], limit: int) -> None:
        self._layers = layers
        self._limit = limit
        self.capacity = 0
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []

    @torch.inference_mode()
    def reserve(self, size: int, used: int) -> None:
        """Make room for `size` columns, keeping the first `used`; grows by doubling up to the context length."""
        if size <= self.capacity:
            return
        wanted = max(_FIRST_CAPACITY, 2 * self.capacity)
        while wanted < size:
            wanted *= 2
        self.capacity = max(size, min(wanted, self._limit))
        for index, layer in enumerate(self._layers):
            for kept, width in ((self.keys, layer.key_size), (self.values, layer.value_size)):
                grown = torch.zeros(layer.heads, self.capacity, width, dtype=layer.dtype, device=layer.device)
                if index < len(kept):
                    grown[:, :used] = kept[index][:, :used]
                    kept[index] = grown
                else:
                    kept.append(grown)

    @torch.inference_mode()
    def gather(self, start: int, columns: Sequence[int]) -> None:
        """Move `columns` to the places from `start` on."""
        for tensor in (*self.keys, *self.values):
            index = torch.tensor(columns, device=tensor.device)
            tensor[:, start : start + len(columns)] = tensor.index_select(1, index)

    @torch.inference_mode()
    def copy(self, size: int) -> Columns:
        """The first `size` columns in memory of their own."""
        twin = Columns(self._layers, self._limit)
        if size:
            twin.reserve(size, 0)
            for mine, other in zip((*twin.keys, *twin.values), (*self.keys, *self.values), strict=True):
                mine[:, :size] = other[:, :size]
        return twin


class HFSlot:
    """One sequence's place in the K/V cache of an `HFTarget`."""

    def __init__(self, columns: Columns, tokens: Sequence[int], limit: int) -> None:
        self.columns = columns
        self._tokens = list(tokens)
        self._limit = limit

    @property
    def tokens(self) -> Sequence[int]:
        """The committed tokens; read, don't keep: the next commit changes the list."""
        return self._tokens

    def sync(self, tokens: Sequence[int]) -> Sequence[int]:
        """Keep the longest prefix shared with `tokens` and return the rest, at least the last token.

        Raises:
            ValueError: There are no tokens.
        """
        if not tokens:
            raise ValueError("a slot can't be synced with no tokens: the last one has to be pending")
        keep = min(shared_prefix(self._tokens, list(tokens)), len(tokens) - 1)
        del self._tokens[keep:]
        return tokens[keep:]

    def commit(self, row: Row, path: Sequence[int]) -> None:
        """Keep the row's pending tokens and the accepted draft nodes; must follow the forward that had the row.

        Raises:
            ValueError: The row is another slot's, or `path` isn't one from the draft's first level down.
        """
        if row.slot is not self:
            raise ValueError("a slot can only commit a row of its own")
        if any(row.draft.parents[node] != above for above, node in pairwise((ROOT, *path))):
            raise ValueError(f"not a path of the draft: {tuple(path)}")
        start = len(self._tokens) + len(row.pending)
        if tuple(path) != tuple(range(len(path))):
            self.columns.gather(start, [start + node for node in path])
        self._tokens.extend(row.pending)
        self._tokens.extend(row.draft.tokens[node] for node in path)

    def fork(self, length: int | None = None) -> HFSlot:
        """An independent copy of the first `length` committed tokens (all of them by default).

        Raises:
            ValueError: The slot holds fewer tokens.
        """
        size = len(self._tokens) if length is None else length
        if not 0 <= size <= len(self._tokens):
            raise ValueError(f"can't fork {length} tokens of a slot that holds {len(self._tokens)}")
        return HFSlot(self.columns.copy(size), self._tokens[:size], self._limit)

    def close(self) -> None:
        """Free the memory. Closing twice is harmless; an open slot's next forward starts from nothing."""
        self._tokens.clear()
        self.columns = self.columns.copy(0)

    def reserve(self, width: int) -> int:
        """Make room for a row of `width` tokens and return the first one's column.

        Raises:
            PromptTooLongError: The sequence would not fit into the context.
        """
        base = len(self._tokens)
        if base + width > self._limit:
            raise PromptTooLongError(
                f"{base + width} tokens don't fit into the model's context of {self._limit}: shorten the prompt"
            )
        self.columns.reserve(base + width, base)
        return base
