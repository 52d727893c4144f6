"""What is refused for its size, before it costs anything, and clients that take no answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentspec.server.problems import bad_request

if TYPE_CHECKING:
    from agentspec.server.settings import ServerSettings


def check_size(value: object, field: str, settings: ServerSettings) -> None:
    """Refuse a schema, grammar or list of tools that is too large.

    Raises:
        Problem: It is.
    """
    size = len(value) if isinstance(value, str) else len(json.dumps(value))
    if size > settings.max_schema_bytes:
        raise bad_request(f"{field} has {size:,} bytes, at most {settings.max_schema_bytes:,} may be", field)


def check_messages(messages: Sequence[object], settings: ServerSettings, field: str = "messages") -> None:
    """Refuse a conversation that is empty or too long.

    Raises:
        Problem: It is.
    """
    if not messages:
        raise bad_request(f"{field} must hold at least one message", field)
    if len(messages) > settings.max_messages:
        raise bad_request(f"there are {len(messages):,} {field}, at most {settings.max_messages:,} may be", field)


class BodyLimit:
    """Refuses requests with a body that is too large, told or not, as it comes in."""

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        came = 0

        async def limited() -> Message:
            nonlocal came
            message = await receive()
            came += len(message.get("body", b""))
            if came > self._most:
                # Of all that may be raised while a body is read, FastAPI leaves only this as it is.
                raise HTTPException(413, f"the request's body is larger than {self._most:,} bytes")
            return message

        await self._app(scope, limited, send)


class ReadingLimit:
    """Treats a client that stays, but takes nothing of its answer for too long, as one that went away."""

    def __init__(self, app: ASGIApp, *, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        stuck = False

        async def limited(message: Message) -> None:
            nonlocal stuck
            try:
                async with asyncio.timeout(self._seconds):
                    await send(message)
            except TimeoutError:
                stuck = True
                raise ClientDisconnect from None

        try:
            await self._app(scope, receive, limited)
        except ClientDisconnect:
            if not stuck:
                raise
