"""The user's cache folder, and folders in it that are built once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from agentspec.errors import ConfigError

_MANIFEST = "agentspec.json"
_ADVICE = "set AGENTSPEC_CACHE to a folder that can"


def cache_folder() -> Path:
    """Where converted models and tables are kept, whether or not it exists yet.

    `AGENTSPEC_CACHE` where it is set, else `agentspec` in `XDG_CACHE_HOME`, else in `~/.cache`.

    Raises:
        ConfigError: `AGENTSPEC_CACHE` is not an absolute path, so it would mean another folder in each place.
    """
    if chosen := os.environ.get("AGENTSPEC_CACHE"):
        folder = Path(chosen).expanduser()
        if not folder.is_absolute():
            raise ConfigError(f"AGENTSPEC_CACHE is {chosen!r}: give an absolute path")
        return folder
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return (base if base.is_absolute() else Path.home() / ".cache") / "agentspec"


def is_whole(folder: Path) -> bool:
    """Whether `build_once` finished this folder and every file still has the size it had then."""
    try:
        sizes = json.loads((folder / _MANIFEST).read_text())
        return bool(sizes) and all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError, TypeError):
        return False


def build_once(folder: Path, build: Callable[[Path], None]) -> Path:
    """Make `folder` by `build(staging)` unless it is whole, and return it.

    The staging folder takes the place of `folder` only when it is finished, so whoever looks sees all of it or
    nothing. A second process that wants the same folder waits for the first. What was left broken is made anew.

    Raises:
        ConfigError: The cache folder can't be made or written.
    """
    if is_whole(folder):
        return folder
    with _lock(folder):
        if not is_whole(folder):
            staging = folder.with_name(folder.name + ".partial")
            shutil.rmtree(staging, ignore_errors=True)
            staging.mkdir()
            try:
                build(staging)
                sizes = {str(file.relative_to(staging)): file.stat().st_size for file in _files(staging)}
                (staging / _MANIFEST).write_text(json.dumps(sizes, indent=1))
                _discard(folder)
                os.replace(staging, folder)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    return folder


def remove(folder: Path) -> bool:
    """Delete what `build_once` made, whole or not; False where there was nothing."""
    if not folder.exists():
        return False
    with _lock(folder):
        _discard(folder)
    return True


def _discard(folder: Path) -> None:
    """Out of sight in one step, then file by file: a half-deleted folder is never seen under its own name."""
    if folder.exists():
        doomed = folder.with_name(folder.name + ".removed")
        shutil.rmtree(doomed, ignore_errors=True)
        os.replace(folder, doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def _lock(folder: Path) -> FileLock:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"the cache folder {folder.parent} can't be made: {error.strerror}; {_ADVICE}") from error
    if not os.access(folder.parent, os.W_OK):
        raise ConfigError(f"the cache folder {folder.parent} can't be written; {_ADVICE}")
    return FileLock(folder.with_name(folder.name + ".lock"))
