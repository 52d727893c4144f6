"""Server-sent events, and answers that end when their client does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeVar

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from agentspec.server.problems import GONE

_T = TypeVar("_T")

DONE = b"data: [DONE]\n\n"


def message(data: dict[str, Any], event: str | None = None) -> bytes:
    """One event on the wire."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


async def stream(parts: AsyncGenerator[bytes]) -> StreamingResponse:
    """A response of events; proxies are asked not to hold them back.

    What the parts raise before the first of them is raised here, while the response can still be an error. They are
    closed when the response is over, however it ends.
    """
    return _Events(await anext(parts), parts)


class _Events(StreamingResponse):
    def __init__(self, first: bytes, parts: AsyncGenerator[bytes]) -> None:
        async def all_parts() -> AsyncIterator[bytes]:
            yield first
            async for part in parts:
                yield part

        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(all_parts(), media_type="text/event-stream", headers=headers)
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A client that is gone before the first part is sent leaves all_parts without a start, and so without an end.
        async with aclosing(self._parts):
            await super().__call__(scope, receive, send)


async def unless_gone(request: Request, work: Coroutine[Any, Any, _T]) -> _T:
    """The value of some work, which is cancelled as soon as the client goes away.

    Raises:
        Problem: The client went away.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise replace(GONE)  # a new one: an error keeps the frames that it went through
        return task.result()
    finally:
        gone.cancel()
        task.cancel()
        await asyncio.wait((task, gone))


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
