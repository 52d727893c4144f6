"""What a loaded model's attention layers are like: learned from one short forward, not from the config."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface
from transformers.modeling_utils import AttentionInterface

from agentspec.errors import UnsupportedModelError
from agentspec.models.attention import attend_layer
from agentspec.models.slots import LayerShape

ATTENTION = "agentspec"
"""The name under which transformers knows our attention."""

_WATCH = "agentspec_watch"
_UNKNOWN = ("s_aux", "position_bias", "sinks")


@dataclass
class _Watch:
    layers: dict[int, LayerShape] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Sight:
    """Stands in for a mask: what the model's own code asked for."""

    window: int | None


def learn_layers(model: PreTrainedModel) -> list[LayerShape]:
    """The attention layers in order, as the model's own code drives them.

    Raises:
        UnsupportedModelError: A layer isn't causal attention, full or with a sliding window, over its own keys.
    """
    watch = _Watch()
    model.set_attn_implementation(_WATCH)
    tokens = torch.zeros(1, 2, dtype=torch.long, device=model.device)
    try:
        model(input_ids=tokens, use_cache=False, watch=watch)
    finally:
        model.set_attn_implementation(ATTENTION)
    count = model.config.get_text_config().num_hidden_layers
    if sorted(watch.layers) != list(range(count)):
        raise UnsupportedModelError(
            f"{type(model).__name__} has {count} layers, of which {len(watch.layers)} are attention that can be driven "
            "from outside: its cache can't be cut back to the accepted tokens"
        )
    return [watch.layers[index] for index in range(count)]


def check_logits(model: PreTrainedModel, ours: Callable[[list[int]], Tensor]) -> None:
    """Compare our logits after a few tokens with those of the model's own attention.

    Raises:
        UnsupportedModelError: They differ by more than rounding.
    """
    size = model.get_input_embeddings().num_embeddings
    tokens = [(7 * place + 1) % size for place in range(6)]
    model.set_attn_implementation("eager")
    try:
        ids = torch.tensor([tokens], device=model.device)
        own = model(input_ids=ids, use_cache=False).logits[0, -1].float()
    finally:
        model.set_attn_implementation(ATTENTION)
    difference = (ours(tokens) - own).abs().max().item()
    exact = next(model.parameters()).dtype == torch.float32
    allowed = (1e-3 if exact else 0.1) * max(1.0, own.abs().max().item())
    if not difference <= allowed:
        raise UnsupportedModelError(
            f"{type(model).__name__} gives other logits (by {difference:.3g}) than with its own attention: "
            "its layers do something that is not supported here"
        )


def _watch_layer(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: object,
    *,
    watch: _Watch,
    **kwargs: object,
) -> tuple[Tensor, None]:
    name = type(module).__name__
    for unknown in _UNKNOWN:
        if kwargs.get(unknown) is not None:
            raise UnsupportedModelError(f"{name} uses {unknown}, which is not supported: choose another model")
    if not isinstance(attention_mask, _Sight):
        raise UnsupportedModelError(f"{name} makes its own attention mask: it can't be told what a draft may see")
    watch.layers[cast(int, module.layer_idx)] = LayerShape(
        key.shape[1], key.shape[3], value.shape[3], attention_mask.window, key.dtype, key.device
    )
    groups = query.shape[1] // key.shape[1]
    return value.repeat_interleave(groups, dim=1).transpose(1, 2), None


def _watch_mask(*, mask_function: Callable[..., Tensor], local_size: int | None = None, **_: object) -> _Sight:
    reach = local_size if local_size is not None else 64
    query = torch.tensor(2 * reach + 1)
    key = torch.arange(2 * reach + 3)
    first = torch.tensor(0)
    seen = torch.as_tensor(mask_function(first, first, query, key)).expand_as(key)
    wanted = key <= query
    if local_size is not None:
        wanted &= query - key < local_size
    if not torch.equal(seen, wanted):
        raise UnsupportedModelError(
            "this model's attention is neither causal nor a sliding window (chunked or bidirectional): choose another"
        )
    return _Sight(local_size)


AttentionInterface.register(ATTENTION, attend_layer)
AttentionInterface.register(_WATCH, _watch_layer)
AttentionMaskInterface.register(_WATCH, _watch_mask)
