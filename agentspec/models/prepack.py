"""CPU kernels: float32 weights laid out once for a few rows at a time, instead of at each call.

`torch.nn.functional.linear` hands oneDNN the plain weight, which is rearranged on every call as soon as there is more
than one row. Here that is done once. The products are the same float32 sums.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

PACKED_WIDTH = 6
"""Fewer rows than this cost no less than this many (measured with AVX-512: one row 1.2 times as much as six)."""

_LAYOUT_ROWS = 16


class PackedLinear(nn.Module):
    """A linear layer whose weight exists in oneDNN's layout only. For inference on the CPU in float32."""

    def __init__(self, linear: nn.Linear) -> None:
        """Pack the weight of `linear`, which keeps its own."""
        super().__init__()
        self.in_features = linear.in_features
        self.out_features = linear.out_features
        self._bias = None if linear.bias is None else linear.bias.detach()
        self._packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), _LAYOUT_ROWS)

    def forward(self, inputs: Tensor) -> Tensor:
        """`[..., in_features]` to `[..., out_features]`."""
        found: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, self._packed, self._bias, "none", [], "")
        return found


def can_prepack() -> bool:
    """Whether this build of torch has the kernels."""
    return hasattr(torch.ops.mkldnn, "_reorder_linear_weight") and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def prepack_linears(model: nn.Module) -> int:
    """Replace every float32 linear layer by a packed one, freeing each weight as it goes; returns how many.

    A head that is tied to the embedding is packed too, and the embedding keeps the weight for its lookups.
    """
    packed = 0
    owners = [module for module in model.modules() if any(map(_packable, module.children()))]
    for owner in owners:
        for name in [name for name, child in owner.named_children() if _packable(child)]:
            setattr(owner, name, PackedLinear(cast(nn.Linear, owner.get_submodule(name))))
            packed += 1
    return packed


def _packable(module: nn.Module) -> bool:
    return type(module) is nn.Linear and module.weight.dtype == torch.float32 and module.weight.device.type == "cpu"
