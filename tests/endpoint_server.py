"""A real server on a real port, in a thread, for tests that need one."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import sleep
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from agentspec import Engine, EngineConfig
from agentspec.server.app import create_app
from agentspec.server.settings import ServerSettings

MODEL = "smollm2-135m"


@dataclass(frozen=True)
class Endpoint:
    """A running server."""

    url: str
    app: FastAPI
    engine: Engine

    def post(self, path: str, body: dict[str, Any], headers: Mapping[str, str] = {}) -> httpx.Response:
        """One request; the model's name is filled in."""
        headers = {"Content-Type": "application/json", **headers}
        return httpx.post(self.url + path, content=json.dumps({"model": MODEL, **body}), headers=headers, timeout=60)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return httpx.get(self.url + path, timeout=60, **options)

    def events(self, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        """One streamed request; the events' data, without the `[DONE]` at the end."""
        answer = self.post(path, {**body, "stream": True})
        assert answer.status_code == 200, answer.text
        data = [line.removeprefix("data: ") for line in answer.text.split("\n") if line.startswith("data: ")]
        assert data[-1] == "[DONE]" or path == "/v1/messages"
        return [json.loads(each) for each in data if each != "[DONE]"]


class _Kept:
    """The engine of all tests, which no single server may close."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def close(self) -> None:
        """The fixture does that."""


@contextmanager
def serving(engine: Engine, settings: ServerSettings, *, max_running: int = 8) -> Iterator[Endpoint]:
    """A server with these settings, until the block is left."""
    config = EngineConfig(max_running=max_running)
    app = create_app(lambda: _Kept(engine), replace(settings, port=0), config=config)  # type: ignore[arg-type,return-value]
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    while not (server.started and app.state.desk):
        assert thread.is_alive(), "the server did not start"
        sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Endpoint(f"http://127.0.0.1:{port}", app, engine)
    finally:
        server.should_exit = True
        thread.join(timeout=20)
