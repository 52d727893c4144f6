"""Attention over ragged rows: each row's queries against its own slot's columns, no padding, no copied heads.

The functions here are what transformers calls for each attention layer (its attention interface). What a forward needs
to know comes as the keyword argument `plan`, which decoder layers hand through to the attention function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from agentspec.draft import ROOT
from agentspec.models.base import Row
from agentspec.models.slots import Columns, LayerShape

_BIG = 32
"""Rows with more tokens than this go through the fused kernel: it pays for prefill only."""


class Piece:
    """One row's place in a ragged forward.

    Attributes:
        columns: The slot's keys and values.
        base: Committed tokens before the row, and the row's first column.
        start: The row's first token in the forward.
        width: The row's tokens.
        places: Position of each token in its sequence; a draft node's is base + pending + depth.
    """

    def __init__(self, row: Row, columns: Columns, base: int, start: int) -> None:
        self.columns = columns
        self.base = base
        self.start = start
        self.width = row.width
        pending = len(row.pending)
        self.chain = row.draft.is_chain
        self.places = [*range(base, base + pending), *(base + pending + depth for depth in row.draft.depths())]
        self._pending = pending
        self._parents = row.draft.parents
        self._sights: dict[int | None, tuple[int, Tensor | None]] = {}

    def sight(self, window: int | None, device: torch.device) -> tuple[int, Tensor | None]:
        """What the row sees in a layer: the first column, and a mask for the last columns.

        The mask is bool `[width, tail]`, True where seen; columns before the tail are seen by all. None: all is seen.
        """
        if window not in self._sights:
            self._sights[window] = self._look(window, device)
        first, mask = self._sights[window]
        if mask is not None and mask.device != device:
            mask = mask.to(device)
            self._sights[window] = first, mask
        return first, mask

    def _look(self, window: int | None, device: torch.device) -> tuple[int, Tensor | None]:
        last = self.places[-1] if self.chain else max(self.places)
        first = 0 if window is None else max(0, self.base + 1 - window)
        if self.width == 1:
            return first, None
        near = self._ancestors().to(device)
        if window is None or last < window:
            return 0, near
        query = torch.tensor(self.places, device=device)
        key = torch.cat([torch.arange(first, self.base, device=device), query])
        mask = query[:, None] - key < window
        mask[:, self.base - first :] &= near
        return first, mask

    def _ancestors(self) -> Tensor:
        """Bool `[width, width]`: which of the row's own tokens each one follows, itself included."""
        seen = torch.ones(self.width, self.width, dtype=torch.bool).tril()
        if not self.chain:
            for node, parent in enumerate(self._parents):
                row = self._pending + node
                above = self._pending - 1 if parent == ROOT else self._pending + parent
                seen[row] = seen[above]
                seen[row, row] = True
        return seen


class Attending(Protocol):
    """What a forward hands to its attention layers."""

    def attend(self, layer: int, states: tuple[Tensor, Tensor, Tensor], scale: float, softcap: float | None) -> Tensor:
        """Write the new keys and values, then attend.

        Args:
            layer: Its index.
            states: Queries, keys and values `[1, heads, tokens, size]`.
            scale: The factor on query times key.
            softcap: The soft cap on the result, if there is one.

        Returns:
            `[1, tokens, heads, value size]`.
        """


class Plan:
    """Everything the attention of one forward needs, for all layers."""

    def __init__(self, pieces: Sequence[Piece], layers: Sequence[LayerShape]) -> None:
        self._pieces = pieces
        self._layers = layers

    def attend(self, layer: int, states: tuple[Tensor, Tensor, Tensor], scale: float, softcap: float | None) -> Tensor:
        """Write the new keys and values, then attend; `[1, tokens, heads, value size]`."""
        query, key, value = (state[0] for state in states)
        window = self._layers[layer].window
        found = []
        for piece in self._pieces:
            mine = slice(piece.start, piece.start + piece.width)
            keys, values = piece.columns.keys[layer], piece.columns.values[layer]
            end = piece.base + piece.width
            keys[:, piece.base : end] = key[:, mine]
            values[:, piece.base : end] = value[:, mine]
            first, mask = piece.sight(window, query.device)
            found.append(attend(query[:, mine], keys[:, first:end], values[:, first:end], mask, (scale, softcap)))
        return (found[0] if len(found) == 1 else torch.cat(found)).unsqueeze(0)


def attend(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scoring: tuple[float, float | None]
) -> Tensor:
    """Attention of one row: `[heads, width, size]` over `[kv heads, columns, size]`, to `[width, heads, value size]`.

    Query heads that share a key/value head are laid side by side as more queries, so no head is copied.

    Args:
        query: The row's queries.
        keys: The columns that any of them sees.
        values: As `keys`.
        mask: Bool `[width, tail]` for the last `tail` columns.
        scoring: The factor on query times key, and the soft cap on the result, if there is one.
    """
    scale, softcap = scoring
    heads, width, size = query.shape
    if width > _BIG and softcap is None:
        return _fused(query, keys, values, mask, scale)
    shared = keys.shape[0]
    grouped = query.reshape(shared, -1, size)
    scores = torch.bmm(grouped * scale, keys.transpose(1, 2)).float()
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if mask is not None:
        tail = scores.view(shared, heads // shared, width, -1)[..., -mask.shape[1] :]
        tail.masked_fill_(~mask, float("-inf"))
    chances = torch.softmax(scores, dim=-1).to(values.dtype)
    return torch.bmm(chances, values).view(heads, width, -1).transpose(0, 1)


def _fused(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    total = keys.shape[1]
    if mask is not None and mask.shape[1] < total:
        mask = F.pad(mask, (total - mask.shape[1], 0), value=True)
    found = F.scaled_dot_product_attention(
        query[None], keys[None], values[None], attn_mask=mask, scale=scale, enable_gqa=keys.shape[0] < query.shape[0]
    )
    return found[0].transpose(0, 1)


def attend_layer(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    plan: Attending,
    scaling: float | None = None,
    softcap: float | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """What transformers calls for each attention layer of a forward with `plan=`."""
    scale = scaling or query.shape[-1] ** -0.5
    return plan.attend(cast(int, module.layer_idx), (query, key, value), scale, softcap), None
