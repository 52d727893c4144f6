"""Whether a model is where its name says, told before torch and transformers are imported to load it."""

from __future__ import annotations

from pathlib import Path

from agentspec.errors import ModelNotFoundError
from agentspec.models.embedded import KNOWN, resolve

_WAIT_S = 10


def check_models(*names: str | None) -> None:
    """Refuse a name behind which there is no model: no known one, folder, file, cached one or one on the hub.

    The hub is asked once, and only for what its cache does not hold. None names the default.

    Raises:
        ModelNotFoundError: There is none, or the hub can't tell.
    """
    for name in names:
        if name is None or name in KNOWN or Path(name).expanduser().exists():
            continue
        if "/" not in name or name.lower().endswith(".gguf"):
            resolve(name)  # which knows all of these
        else:
            require(name)
            _ask_hub(name)


def require(name: str) -> None:
    """Refuse a name that looks like a folder's, and there is none.

    Raises:
        ModelNotFoundError: So it is.
    """
    path = Path(name)
    looks_local = name.startswith((".", "/", "~")) or "\\" in name or name.count("/") > 1
    if looks_local and not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise ModelNotFoundError(f"model folder {name} {what}: give a folder with config.json, or a hub id")


def _ask_hub(name: str) -> None:
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    try:
        if not isinstance(try_to_load_from_cache(name, "config.json"), str):
            HfApi().model_info(name, timeout=_WAIT_S)
    except GatedRepoError:
        return  # whoever loads it is told what to do
    except RepositoryNotFoundError as error:
        raise ModelNotFoundError(f"{name} is no folder here and no model on the hub: check the name") from error
    except Exception as error:
        what = " ".join(str(error).split())[:200]
        raise ModelNotFoundError(
            f"{name} is no folder here and not in the hub's cache, and the hub can't be asked for it ({what}): "
            "give a folder, a known name (`agentspec models`), or go online"
        ) from error
