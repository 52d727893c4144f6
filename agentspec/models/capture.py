"""Forwards in a few fixed widths: captured once as CUDA graphs and replayed, without Python between the kernels.

A step has static shapes: a fixed number of tokens, all columns of one slot, and a mask that says which of them count.
The same step runs uncaptured on any device. With one width only, plain and speculative decoding of a lone sequence
share every shape, and so the arithmetic: this is the strict mode.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from transformers import PreTrainedModel

from agentspec.models.attention import Piece, attend
from agentspec.models.slots import Columns, LayerShape

_WORTH_CAPTURING = 3
"""A slot and width that come up this often get a graph: a short request doesn't pay for one."""


class StaticSteps:
    """Runs lone rows in fixed widths, captured where the device can."""

    def __init__(self, model: PreTrainedModel, layers: Sequence[LayerShape], widths: Sequence[int]) -> None:
        """Nothing is captured yet.

        Args:
            model: On one device, with our attention.
            layers: Its attention layers.
            widths: The tokens of a step, ascending; a row is filled up to the next one.
        """
        self._model = model
        self._layers = layers
        self._widths = sorted(widths)
        self._steps: WeakKeyDictionary[Columns, dict[int, _Step]] = WeakKeyDictionary()
        self._capture = bool(widths) and model.device.type == "cuda"

    def run(self, tokens: Sequence[int], piece: Piece, limit: int) -> Tensor | None:
        """Logits `[width, vocab]` of the row's tokens; None where no width fits, or the context ends before it."""
        place = bisect_left(self._widths, piece.width)
        if place == len(self._widths) or piece.base + self._widths[place] > limit:
            return None
        width = self._widths[place]
        piece.columns.reserve(piece.base + width, piece.base)
        steps = self._steps.setdefault(piece.columns, {})
        step = steps.get(width)
        if step is None or step.keys[0] is not piece.columns.keys[0]:
            step = steps[width] = _Step(self._model, self._layers, piece.columns, width)
        step.fill(tokens, piece)
        if not self._capture:
            return step.compute()[: piece.width]
        return self._replay(step)[: piece.width]

    def _replay(self, step: _Step) -> Tensor:
        step.uses += 1
        if step.graph is None:
            eager = step.compute()
            if step.uses >= _WORTH_CAPTURING:
                self._try(step, eager)
            return eager
        step.graph.replay()
        return step.logits.clone()

    def _try(self, step: _Step, eager: Tensor) -> None:
        trouble = ""
        try:
            step.capture()
            allowed = 1e-3 if eager.dtype == torch.float32 else 0.05
            difference = (step.logits - eager).abs().max().item() / max(1.0, eager.abs().max().item())
            if not difference <= allowed:
                trouble = f"its logits differ from uncaptured ones by {difference:.3g}"
        except RuntimeError as error:
            trouble = str(error).split("\n")[0]
        if trouble:
            self._capture = False
            self._steps.clear()
            warnings.warn(f"CUDA graphs are off, decoding goes on without: {trouble}", RuntimeWarning, stacklevel=2)


class _Step:
    """One width over one slot's columns: the inputs' fixed memory, and the graph once there is one."""

    def __init__(self, model: PreTrainedModel, layers: Sequence[LayerShape], columns: Columns, width: int) -> None:
        self._model = model
        self._windows = [layer.window for layer in layers]
        self.keys, self.values = list(columns.keys), list(columns.values)
        self._width = width
        self._inputs = torch.zeros(3, width, dtype=torch.long, device=model.device)
        shape = (width, columns.capacity)
        self._masks = {w: torch.zeros(shape, dtype=torch.bool, device=model.device) for w in set(self._windows)}
        self.uses = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.logits = torch.empty(0)

    def fill(self, tokens: Sequence[int], piece: Piece) -> None:
        """Put the row into the fixed memory; the filling tokens are written behind it and seen by nobody."""
        extra = self._width - piece.width
        places = piece.places + [0] * extra
        columns = range(piece.base, piece.base + self._width)
        self._inputs.copy_(torch.tensor([[*tokens, *([0] * extra)], places, list(columns)]))
        end = piece.base + piece.width
        for window, mask in self._masks.items():
            first, seen = piece.sight(window, torch.device("cpu"))
            full = torch.zeros(mask.shape, dtype=torch.bool)
            full[: piece.width, first:end] = True
            if seen is not None:
                full[: piece.width, end - seen.shape[1] : end] = seen
            full[piece.width :, 0] = True
            mask.copy_(full)

    def compute(self) -> Tensor:
        """Logits `[step width, vocab]` for what was filled in."""
        found = self._model(
            input_ids=self._inputs[:1], position_ids=self._inputs[1:2], use_cache=False, plan=self
        ).logits[0]
        return torch.as_tensor(found)

    def capture(self) -> None:
        """Record `compute` as a graph, and run it once."""
        side = torch.cuda.Stream(self._inputs.device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.compute()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.logits = self.compute()
        graph.replay()
        self.graph = graph

    def attend(self, layer: int, states: tuple[Tensor, Tensor, Tensor], scale: float, softcap: float | None) -> Tensor:
        """What `attention.Plan.attend` does, with static shapes."""
        query, key, value = (state[0] for state in states)
        keys, values = self.keys[layer], self.values[layer]
        keys.index_copy_(1, self._inputs[2], key)
        values.index_copy_(1, self._inputs[2], value)
        return attend(query, keys, values, self._masks[self._windows[layer]], (scale, softcap)).unsqueeze(0)
