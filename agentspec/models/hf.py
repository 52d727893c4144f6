"""The target on transformers: any decoder-only model with attention layers, driven in one ragged forward."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from agentspec.errors import ModelError
from agentspec.models.attention import Piece, Plan
from agentspec.models.base import Output, Row
from agentspec.models.capture import StaticSteps
from agentspec.models.probe import check_logits, learn_layers
from agentspec.models.slots import Columns, HFSlot


class HFTarget:
    """A transformers model behind `TargetModel`.

    The tokens of all rows go through the model as one sequence without padding, so a linear layer costs what the
    tokens cost; attention is split by row (see `agentspec.models.attention`). Rows don't see each other.
    """

    def __init__(self, model: PreTrainedModel, *, eos: Iterable[int] = (), static_widths: Sequence[int] = ()) -> None:
        """Take over a loaded model, in evaluation mode, and check that its attention can be driven.

        Args:
            model: In the dtype and on the device where it runs.
            eos: Ids that end a sequence.
            static_widths: A lone row of fewer tokens runs in the next of these widths with static shapes, captured on
                CUDA. With one width for all, plain and speculative decoding share their arithmetic.

        Raises:
            UnsupportedModelError: Running it here could change its tokens.
        """
        self.model = model.eval()
        self._eos = frozenset(eos)
        self._limit = _context_length(model)
        self._size = int(model.get_input_embeddings().num_embeddings)
        with torch.inference_mode():
            self._layers = learn_layers(model)
            self._static = StaticSteps(model, self._layers, static_widths)
            check_logits(model, self._last_logits)

    @property
    def vocab_size(self) -> int:
        """Rows of the embedding: a token id at or above this is refused."""
        return self._size

    @property
    def context_length(self) -> int:
        """The most tokens that a sequence may hold."""
        return self._limit

    @property
    def eos(self) -> frozenset[int]:
        """Ids that end a sequence."""
        return self._eos

    @property
    def device(self) -> torch.device:
        """Where token ids go in and logits come out."""
        return torch.device(self.model.device)

    def open(self) -> HFSlot:
        """A new, empty slot."""
        return HFSlot(Columns(self._layers, self._limit), (), self._limit)

    @torch.inference_mode()
    def forward(self, rows: Sequence[Row]) -> Output:
        """Run the rows' pending tokens and drafts through the model, in one ragged batch.

        Raises:
            PromptTooLongError: A sequence would not fit into the context.
            ModelError: A token id is outside the vocabulary.
            ValueError: A row has nothing pending, or two rows share a slot.
        """
        pieces = self._pieces(rows)
        tokens = [token for row in rows for token in (*row.pending, *row.draft.tokens)]
        if len(rows) == 1 and (found := self._static.run(tokens, pieces[0], self._limit)) is not None:
            return Output(found[len(rows[0].pending) - 1 :].float())
        places = [place for piece in pieces for place in piece.places]
        keep = [
            place
            for row, piece in zip(rows, pieces, strict=True)
            for place in range(piece.start + len(row.pending) - 1, piece.start + piece.width)
        ]
        inputs = torch.tensor([tokens, places, keep + [0] * (len(tokens) - len(keep))], device=self.device)
        logits = self.model(
            input_ids=inputs[:1],
            position_ids=inputs[1:2],
            use_cache=False,
            logits_to_keep=inputs[2, : len(keep)],
            plan=Plan(pieces, self._layers),
        ).logits[0]
        return Output(logits.float())

    def _pieces(self, rows: Sequence[Row]) -> list[Piece]:
        if len({id(row.slot) for row in rows}) < len(rows):
            raise ValueError("two rows of a forward share a slot")
        pieces: list[Piece] = []
        start = 0
        for row in rows:
            if not row.pending:
                raise ValueError("a row needs at least one pending token")
            if not isinstance(row.slot, HFSlot):
                raise ValueError(f"a {type(row.slot).__name__} is not a slot of this target")
            for token in (*row.pending, *row.draft.tokens):
                if not 0 <= token < self._size:
                    raise ModelError(f"token id {token} is outside the model's vocabulary of {self._size}")
            base = row.slot.reserve(row.width)
            pieces.append(Piece(row, row.slot.columns, base, start))
            start += row.width
        return pieces

    def _last_logits(self, tokens: list[int]) -> Tensor:
        slot = self.open()
        first = Row(slot, tokens[:2])
        self.forward([first])
        slot.commit(first, ())
        return self.forward([Row(slot, tokens[2:])]).logits[-1]


def _context_length(model: PreTrainedModel) -> int:
    """What the config says; with rotary frequencies that change with the length, only up to where they change.

    Beyond that point a cached key would not be what a fresh prefill makes of the same tokens.
    """
    config = model.config.get_text_config()
    length = int(getattr(config, "max_position_embeddings", 0) or 1 << 20)
    scaling = getattr(config, "rope_parameters", None) or {}
    kinds = [value for value in scaling.values() if isinstance(value, dict)] or [scaling]
    for kind in kinds:
        if kind.get("rope_type") in ("dynamic", "longrope"):
            original = kind.get("original_max_position_embeddings") or getattr(
                config, "original_max_position_embeddings", None
            )
            length = min(length, int(original or length))
    return length
