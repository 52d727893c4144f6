"""Loading: from a folder or hub id to a target, with every refusal before the weights are read where that can be."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    GenerationConfig,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from agentspec.errors import ConfigError, ModelError, ModelNotFoundError, UnsupportedModelError
from agentspec.models.device import best_device
from agentspec.models.hf import HFTarget
from agentspec.models.named import require
from agentspec.models.prepack import prepack_linears
from agentspec.models.probe import ATTENTION
from agentspec.models.quiet import quiet
from agentspec.models.tokenizer import line, translated

_log = logging.getLogger("agentspec")
_loading = logging.getLogger("agentspec.loading")
_ATTENTION_LAYERS = {"full_attention", "sliding_attention"}
_CUDA_WIDTHS = (1, 2, 4, 8, 16, 32)
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")


def load_target(
    model: str | os.PathLike[str],
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    device_map: str | dict[str, object] | None = None,
    trust_remote_code: bool = False,
    allow_pickle: bool = False,
    prepack: bool = True,
    half: bool = True,
    strict_width: int | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
) -> HFTarget:
    """The model of a folder or hub id, ready to verify drafts.

    Args:
        model: A folder with `config.json` and safetensors weights, or a hub id.
        device: Where it runs. None: CUDA, then MPS, then the CPU, whichever there is.
        dtype: Of weights and arithmetic. None: float32 on the CPU, elsewhere what the checkpoint has.
        device_map: Spreads the layers over devices, as transformers does it; instead of `device`.
        trust_remote_code: Run the Python code that a model brings along.
        allow_pickle: Take weights in pickle files, which can run code when they are read.
        prepack: On the CPU in float32, lay the weights out for a few rows at a time; the results are the same.
        half: When prepacking, keep in 16 bits what fits into them exactly, and read half the memory.
        strict_width: Run a lone sequence's every step with this many tokens, so that plain and speculative decoding
            share their arithmetic in any precision; at least 1 + the largest draft.
        tokenizer: Its end token then ends a sequence too.

    Raises:
        ModelNotFoundError: Nothing is there.
        UnsupportedModelError: Running it could change its tokens.
        ModelError: Its files can't be read.
    """
    name = os.fspath(model)
    config = _read_config(name, trust_remote_code)
    _refuse(name, config, trust_remote_code)
    _refuse_pickle(name, allow_pickle)
    if device is not None and device_map is not None:
        raise ConfigError(f"device {device!r} and device_map are both given: leave one of them out")
    place = None if device_map is not None else _usable(device) if device is not None else best_device()
    kind = _dtype(dtype) if dtype is not None else torch.float32 if place == torch.device("cpu") else "auto"
    options = {"dtype": kind, "device_map": device_map, "trust_remote_code": trust_remote_code}
    loaded = _read_weights(name, config, allow_pickle=allow_pickle, **options)
    if place is not None:
        loaded = loaded.to(place)
    if prepack:
        _loading.info("laying them out for forwards of few tokens")
        prepack_linears(loaded, half=half)
    widths = (strict_width,) if strict_width else _CUDA_WIDTHS if place is not None and place.type == "cuda" else ()
    return HFTarget(loaded, eos=_eos(loaded, tokenizer), static_widths=widths)


def _read_weights(name: str, config: PretrainedConfig, *, allow_pickle: bool, **options: object) -> PreTrainedModel:
    _loading.info("reading the weights of %s%s", Path(name).name, _size(name))
    with quiet(), translated(name):
        loaded, info = AutoModelForCausalLM.from_pretrained(
            name,
            config=config,
            attn_implementation=ATTENTION,
            use_safetensors=None if allow_pickle else True,
            output_loading_info=True,
            **options,
        )
    _check_complete(name, info)
    return loaded


def _size(name: str) -> str:
    found = sum(file.stat().st_size for file in Path(name).glob("*.safetensors")) if Path(name).is_dir() else 0
    return f", {found / 1e9:.1f} GB" if found else ""


def _usable(device: str | torch.device) -> torch.device:
    """The device, if something can be put there."""
    try:
        torch.zeros(1, device=device).cpu()
        return torch.device(device)
    except (AssertionError, RuntimeError, TypeError, NotImplementedError) as error:
        raise ConfigError(f"device {device!r} can't be used here: {line(error)}") from error


def _read_config(name: str, trust_remote_code: bool) -> PretrainedConfig:
    require(name)
    if Path(name).is_dir() and not (Path(name) / "config.json").exists():
        raise ModelNotFoundError(f"{name} has no config.json: it is not a model folder")
    with quiet(), translated(name):
        return AutoConfig.from_pretrained(name, trust_remote_code=trust_remote_code)


def _refuse(name: str, config: PretrainedConfig, trust_remote_code: bool) -> None:
    """Refuse, from the config alone, what can't be cut back to the accepted tokens or is no decoder."""
    text = config.get_text_config()
    kind = config.model_type
    if getattr(config, "is_encoder_decoder", False):
        raise UnsupportedModelError(f"{name}: {kind} is an encoder-decoder model; a decoder-only one is needed")
    known = type(config) in AutoModelForCausalLM._model_mapping
    if not known and not (trust_remote_code and "AutoModelForCausalLM" in getattr(config, "auto_map", {})):
        raise UnsupportedModelError(f"{name}: {kind} is not a causal language model")
    others = sorted(set(getattr(text, "layer_types", None) or ()) - _ATTENTION_LAYERS)
    recurrent = known and getattr(AutoModelForCausalLM._model_mapping[type(config)], "_is_stateful", False)
    if others or recurrent:
        what = f"layers of type {', '.join(others)}" if others else "a recurrent state"
        raise UnsupportedModelError(
            f"{name}: {kind} has {what}, which can't be cut back to the accepted tokens; choose a model whose layers "
            "are all full or sliding-window attention"
        )
    if getattr(text, "num_kv_shared_layers", 0):
        raise UnsupportedModelError(f"{name}: {kind} shares keys and values between layers, which is not supported")


def _refuse_pickle(name: str, allow_pickle: bool) -> None:
    folder = Path(name)
    if not folder.is_dir() or any(folder.glob("*.safetensors")):
        return
    pickles = sorted(path.name for pattern in _PICKLES for path in folder.glob(pattern))
    if not pickles:
        raise ModelNotFoundError(f"{name} has no weights: expected *.safetensors")
    if not allow_pickle:
        raise ModelError(
            f"{name} has its weights only in pickle files ({pickles[0]}), which can run code when read: convert them "
            "to safetensors, or allow pickle if you trust where they come from"
        )


def _check_complete(name: str, info: dict[str, object]) -> None:
    """Missing weights would be random numbers; more weights than the model has are only told."""
    for trouble in ("missing_keys", "mismatched_keys", "error_msgs"):
        if found := info.get(trouble):
            first = next(iter(sorted(map(str, found))))  # type: ignore[call-overload]
            raise ModelError(f"{name}: the weights don't fit the config ({trouble.replace('_', ' ')}: {first})")
    if unused := sorted(map(str, info.get("unexpected_keys") or ())):  # type: ignore[call-overload]
        _log.warning("%s: %d weights are not used by this architecture, the first: %s", name, len(unused), unused[0])


def _eos(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None) -> set[int]:
    generation = model.generation_config or GenerationConfig.from_model_config(model.config)
    given = generation.eos_token_id
    found = {given} if isinstance(given, int) else set(given or ())
    if tokenizer is not None and tokenizer.eos_token_id is not None:
        found.add(int(tokenizer.eos_token_id))
    return found


def _dtype(given: str | torch.dtype) -> torch.dtype:
    found = given if isinstance(given, torch.dtype) else getattr(torch, str(given), None)
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise ModelError(f"dtype {given!r} is not one of float32, bfloat16, float16")
    return found
