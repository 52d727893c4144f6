"""A GGUF file as the model: converted once into a folder of safetensors, tokenizer and chat template.

The dequantized weights of a quantized file are stored as bfloat16. That rounds each weight once, by at most 1 part in
256, below the steps of the quantization itself, and halves the folder. Losslessness is not touched: plain and
speculative decoding read the same folder. A file that is not quantized keeps every bit: bfloat16 where that is exact,
else float32.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentspec.cache import build_once, cache_folder
from agentspec.errors import ModelError, ModelNotFoundError, UnsupportedModelError
from agentspec.progress import progress_bar

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_SPECIAL = {"bos_token": "bos", "eos_token": "eos", "pad_token": "padding", "unk_token": "unknown"}
_UNQUANTIZED = {"F32", "F16", "BF16"}


def converted(path: Path) -> Path:
    """The folder, ready for `from_pretrained`, of a `.gguf` file; the conversion happens at the first call only.

    The folder lies in the cache under the file's name and a key of its path, size and time of change.

    Raises:
        ModelNotFoundError: There is no such file, or it is not a GGUF file.
        UnsupportedModelError: Its architecture, tokenizer or tensor types can't be converted.
        ModelError: The folder can't be written.
    """
    path = path.expanduser()
    _check_magic(path)
    path, stat = path.resolve(), path.stat()
    key = hashlib.sha256(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}".encode()).hexdigest()[:12]
    folder = cache_folder() / "models" / "gguf" / f"{path.stem}-{key}"

    def build(staging: Path) -> None:
        with progress_bar() as bar:
            convert(path, staging, bar)

    return build_once(folder, build)


def convert(path: Path, folder: Path, bar: Progress) -> None:
    """Write the model, tokenizer and chat template of a GGUF file into an existing, empty folder.

    Raises:
        UnsupportedModelError: Its architecture, tokenizer or tensor types can't be converted.
        ModelError: The folder can't be written.
    """
    reading = bar.add_task(f"{path.stem}: reading", total=None)
    import torch  # seconds, the first time: the bar is up by now

    from agentspec.models.quiet import quiet

    types, special = _header(path)
    with quiet():
        with _dequantizing_shown(path.stem, bar, reading):
            model, tokenizer = _read(path)
        _mend_tokenizer(tokenizer, special)
        rounded = not types <= _UNQUANTIZED or _is_exact_in_bf16(model)
        task = bar.add_task(f"{path.stem}: writing", total=None)
        try:
            model.to(torch.bfloat16 if rounded else torch.float32).save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        except OSError as error:
            raise ModelError(f"the converted {path.name} can't be written to {folder.parent}: {error}") from error
        finally:
            bar.remove_task(task)


def _check_magic(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except FileNotFoundError:
        raise ModelNotFoundError(f"there is no file {path}: check the path") from None
    except OSError as error:
        raise ModelNotFoundError(f"{path} can't be read: {error.strerror}") from error
    if magic != b"GGUF":
        raise ModelNotFoundError(f"{path} is not a GGUF file: it begins with {magic!r}, not b'GGUF'")


def _header(path: Path) -> tuple[set[str], dict[str, int]]:
    """The types of the tensors, and the ids of the special tokens by the names that a tokenizer has for them."""
    from gguf import GGUFReader

    with _translated(path):
        reader = GGUFReader(path)
        types = {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}
        fields = {name: reader.get_field(f"tokenizer.ggml.{key}_token_id") for name, key in _SPECIAL.items()}
        special = {name: int(field.contents()) for name, field in fields.items() if field is not None}
    if "rope_freqs.weight" in types:
        raise UnsupportedModelError(
            f"{path.name} scales its rotary embedding by a table that transformers drops when it reads GGUF: "
            f"use the model's safetensors folder"
        )
    return set(types.values()), special


def _mend_tokenizer(tokenizer: PreTrainedTokenizerBase, special: dict[str, int]) -> None:
    """Take back what transformers 5.17 makes up: it ends a text with the token that begins one, and drops spaces."""
    for name, token in special.items():
        tokenizer.init_kwargs.pop(f"{name}_id", None)
        setattr(tokenizer, name, tokenizer.convert_ids_to_tokens(token))
    tokenizer.clean_up_tokenization_spaces = False
    tokenizer.init_kwargs["clean_up_tokenization_spaces"] = False


def _read(path: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with _translated(path):
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        model, info = AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, dtype=torch.float32, output_loading_info=True
        )
    if missing := sorted(info["missing_keys"]):
        raise UnsupportedModelError(f"{path.name} lacks weights: {', '.join(missing[:3])}")
    _forget_quantization(model)
    return model, tokenizer


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """The readers beneath raise nearly anything on a file that they don't understand."""
    try:
        yield
    except Exception as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise UnsupportedModelError(f"{path.name} can't be converted: {reason}") from error


def _forget_quantization(model: PreTrainedModel) -> None:
    """The weights are plain floats now; transformers refuses to save them as long as the model says otherwise."""
    for name in ("hf_quantizer", "quantization_method"):
        vars(model).pop(name, None)
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config


def _is_exact_in_bf16(model: PreTrainedModel) -> bool:
    import torch

    return all(torch.equal(weight, weight.bfloat16().float()) for weight in model.parameters())


@contextmanager
def _dequantizing_shown(name: str, bar: Progress, reading: TaskID) -> Iterator[None]:
    """Count the tensors on our bar: transformers would draw its own, and offers no other way to follow it."""
    from transformers import modeling_gguf_pytorch_utils as reader

    def shown(tensors: Sequence[object], **_: object) -> Iterable[object]:
        bar.update(reading, visible=False)
        return bar.track(tensors, description=f"{name}: dequantizing")

    theirs = reader.tqdm
    reader.tqdm = shown
    try:
        yield
    finally:
        reader.tqdm = theirs
