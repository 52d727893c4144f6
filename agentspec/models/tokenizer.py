"""Loading a tokenizer, which needs no torch; and what finding and reading a model's files has in common."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from agentspec.errors import ModelError, ModelNotFoundError
from agentspec.models.named import require
from agentspec.models.quiet import quiet


def load_tokenizer(model: str | os.PathLike[str], *, trust_remote_code: bool = False) -> PreTrainedTokenizerBase:
    """The tokenizer of a folder or hub id.

    Raises:
        ModelNotFoundError: Nothing is there.
        ModelError: The model comes without a tokenizer, or with one that can't be read.
    """
    name = os.fspath(model)
    require(name)
    folder = Path(name)
    if folder.is_dir() and not any(folder.glob("tokenizer*")) and not any(folder.glob("*.model")):
        if not (folder / "vocab.json").exists():
            raise ModelError(f"{name} has no tokenizer: add its tokenizer.json and tokenizer_config.json")
    with quiet(), translated(name):
        return AutoTokenizer.from_pretrained(name, trust_remote_code=trust_remote_code)


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Errors of transformers as ours, on one line.

    Raises:
        ModelNotFoundError: A file is missing.
        ModelError: It can't be read.
    """
    try:
        yield
    except OSError as error:
        raise ModelNotFoundError(f"can't load {name}: {line(error)}") from error
    except (ValueError, ImportError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelError(f"can't load {name}: {line(error)}") from error


def line(error: Exception) -> str:
    """What an error says, on one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__
