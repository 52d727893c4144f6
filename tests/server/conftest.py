"""Servers for these tests: one on the embedded model, loaded once, and one that writes what it is told to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from endpoint_server import MODEL, Endpoint, serving
from engine_doubles import scripted_engine

from agentspec import Engine, EngineConfig
from agentspec.server.settings import ServerSettings


@pytest.fixture(scope="session")
def engine(smollm2: Path) -> Iterator[Engine]:
    """The embedded model, loaded once."""
    with Engine.load(str(smollm2), config=EngineConfig(measure_cost=False)) as loaded:
        yield loaded


@pytest.fixture(scope="session")
def endpoint(engine: Engine) -> Iterator[Endpoint]:
    """A server with the usual settings."""
    with serving(engine, ServerSettings(model_names=(MODEL,))) as running:
        yield running


@pytest.fixture(scope="session")
def scripted() -> Iterator[Endpoint]:
    """A server whose model writes what `engine.reply` says, byte by byte."""
    with scripted_engine("") as engine, serving(engine, ServerSettings(model_names=(MODEL,))) as running:
        yield running


@pytest.fixture
def serve(request: pytest.FixtureRequest) -> Iterator[Callable[..., Endpoint]]:
    """Starts a server with settings of its own, for this test alone; on the embedded model unless given an engine."""
    with ExitStack() as stack:

        def start(engine: Engine | None = None, *, max_running: int = 8, **settings: Any) -> Endpoint:
            engine = engine or request.getfixturevalue("engine")
            given = ServerSettings(**{"model_names": (MODEL,), **settings})
            return stack.enter_context(serving(engine, given, max_running=max_running))

        yield start
