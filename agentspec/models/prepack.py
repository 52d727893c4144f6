"""CPU kernels: float32 weights laid out once for a few rows at a time, instead of at each call.

`torch.nn.functional.linear` hands oneDNN the plain weight, which is rearranged on every call as soon as there is more
than one row. Here that is done once, and where 16 bits hold the weights exactly, half the memory is read. The products
are the same float32 sums.
"""

from __future__ import annotations

import math
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_BEST_WIDTH = 6
"""Fewer rows than this cost oneDNN no less than this many (measured with AVX-512: one row 1.2 times as much as six)."""

_LAYOUT_ROWS = 16


class PackedLinear(nn.Module):
    """A linear layer whose weight exists in oneDNN's layout only. For inference on the CPU in float32."""

    def __init__(self, linear: nn.Linear) -> None:
        """Pack the weight of `linear`, which keeps its own."""
        super().__init__()
        self._bias = None if linear.bias is None else linear.bias.detach()
        self._packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), _LAYOUT_ROWS)

    def forward(self, inputs: Tensor) -> Tensor:
        """`[..., in_features]` to `[..., out_features]`."""
        flat = inputs.reshape(-1, inputs.shape[-1])
        rows = flat.shape[0]
        if rows < _BEST_WIDTH:
            flat = F.pad(flat, (0, 0, 0, _BEST_WIDTH - rows))
        found: Tensor = torch.ops.mkldnn._linear_pointwise(flat, self._packed, self._bias, "none", [], "")
        return found[:rows].view(*inputs.shape[:-1], -1)


class HalfLinear(nn.Module):
    """A linear layer whose float32 weight is kept in 16 bits without losing any, and multiplied in float32.

    A bfloat16 weight times a power of two is a float16 number, unless its numbers are too far apart: half the memory to
    read. For inference on the CPU in float32.
    """

    def __init__(self, linear: nn.Linear, scale: float) -> None:
        """Pack the weight of `linear`, which keeps its own; `scale` is what `exact_scale` gives for it."""
        super().__init__()
        self._shrink = 1.0 / scale
        bias = None if linear.bias is None else linear.bias.detach()
        self._packed = torch.ops.quantized.linear_prepack_fp16(linear.weight.detach() * scale, bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """`[..., in_features]` to `[..., out_features]`."""
        found: Tensor = torch.ops.quantized.linear_dynamic_fp16(inputs * self._shrink, self._packed)
        return found


def exact_scale(weight: Tensor) -> float | None:
    """The power of two that makes every number of `weight` a float16 number, with nothing lost; None: there is none."""
    largest = weight.detach().abs().max().item()
    if not 0 < largest < math.inf:
        return None
    scale = 2.0 ** (15 - math.frexp(largest)[1])
    scaled = weight.detach() * scale
    return scale if torch.equal(scaled.half().float(), scaled) else None


def prepack_linears(model: nn.Module, *, half: bool = True) -> int:
    """Replace every float32 linear layer on the CPU by a packed one, freeing each weight as it goes; returns how many.

    A head that is tied to the embedding is packed too, and the embedding keeps the weight for its lookups.

    Args:
        model: Changed in place.
        half: Keep weights in 16 bits where they fit exactly, as those of bfloat16 checkpoints do.
    """
    packed = 0
    owners = [module for module in model.modules() if any(map(_packable, module.children()))]
    for owner in owners:
        for name in [name for name, child in owner.named_children() if _packable(child)]:
            linear = cast(nn.Linear, owner.get_submodule(name))
            scale = exact_scale(linear.weight) if half and _has_half_kernels() else None
            if scale is not None:
                setattr(owner, name, HalfLinear(linear, scale))
            elif _has_packed_kernels():
                setattr(owner, name, PackedLinear(linear))
            else:
                continue
            packed += 1
    return packed


def _packable(module: nn.Module) -> bool:
    return type(module) is nn.Linear and module.weight.dtype == torch.float32 and module.weight.device.type == "cpu"


def _has_half_kernels() -> bool:
    return torch.backends.quantized.engine in ("x86", "fbgemm")


def _has_packed_kernels() -> bool:
    return hasattr(torch.ops.mkldnn, "_reorder_linear_weight") and hasattr(torch.ops.mkldnn, "_linear_pointwise")
