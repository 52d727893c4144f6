"""Runs the endpoint until it is told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

import uvicorn

from agentspec.config import EngineConfig
from agentspec.errors import ConfigError
from agentspec.progress import stages
from agentspec.server.app import create_app
from agentspec.server.settings import ServerSettings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from agentspec.local.engine import Engine


def run(
    load: Callable[[], Engine],
    settings: ServerSettings,
    *,
    config: EngineConfig,
    tell: Callable[[str], None] = print,
) -> None:
    """Listen, load, serve; on an interrupt let running requests finish for the time of grace.

    Args:
        load: Loads the engine.
        settings: Where to listen and what to allow.
        config: That the engine is loaded with.
        tell: Told where the server listens, what its loading is at, and when it is ready.

    Raises:
        ConfigError: The address can't be listened at.
        AgentSpecError: The model can't be loaded.
    """
    app = create_app(load, settings, config=config)
    listener = _listen(settings)
    host, port = listener.getsockname()[:2]
    tell(f"listening at {_url(host, port)}; the model is being loaded")
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=max(1, round(settings.grace_s)))
    )
    began = monotonic()

    def ready() -> None:
        tell(f"ready after {monotonic() - began:.0f} s: base URL {_url(host, port)}/v1")

    with stages(tell):
        asyncio.run(_serve(server, app, listener, ready))
    if app.state.failure is not None:
        raise app.state.failure


async def _serve(server: uvicorn.Server, app: FastAPI, listener: socket.socket, ready: Callable[[], None]) -> None:
    watch = asyncio.create_task(_watch(server, app, ready))
    try:
        await server.serve(sockets=[listener])
    finally:
        watch.cancel()


async def _watch(server: uvicorn.Server, app: FastAPI, ready: Callable[[], None]) -> None:
    """Tell when the model is there; stop the server if it can't be loaded."""
    while app.state.desk is None and app.state.failure is None:
        await asyncio.sleep(0.05)
    if app.state.failure is None:
        ready()
    else:
        server.should_exit = True


def _listen(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"can't listen at {settings.host}:{settings.port}: {error.strerror or error}; give another --port or --host"
        ) from error
    return listener


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
