"""What every test gets: no network, a cache folder of its own, and fixtures for what lies beside the checkout."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_socket import socket_allow_hosts

from agentspec.cache import cache_folder

REPOSITORY = Path(__file__).resolve().parent.parent
USERS_CACHE = cache_folder()  # before `_own_cache` points elsewhere


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup() -> None:
    """Nothing outside this machine can be reached; pytest-socket lifts this after each test."""
    socket_allow_hosts(["127.0.0.1", "::1"], allow_unix_socket=True)


def pytest_collection_finish() -> None:
    """What was imported stays to the end: the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTSPEC_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder for this test alone."""
    monkeypatch.setenv("AGENTSPEC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder `shared` beside the checkout, with the public traces; skips where there is none."""
    folder = REPOSITORY.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no ../shared beside the checkout")
    return folder


@pytest.fixture(scope="session")
def real_model() -> Callable[[str], Path]:
    """The folder of a real model by its known name; skips where it has not been fetched."""
    homes = [os.environ.get("AGENTSPEC_MODELS"), "~/.cache/agentspec-models", USERS_CACHE / "models"]

    def find(name: str) -> Path:
        for home in filter(None, homes):
            folder = Path(home).expanduser() / name
            if (folder / "config.json").exists():
                return folder
        pytest.skip(f"{name} is not here: agentspec models fetch {name}")

    return find


@pytest.fixture(scope="session")
def smollm2(real_model: Callable[[str], Path]) -> Path:
    """The folder of SmolLM2-135M-Instruct, the embedded default."""
    return real_model("smollm2-135m")
