"""Who may come in: the key, the host that was asked for, and the way to the desk."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from fastapi import Request
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from agentspec.server.desk import Desk
from agentspec.server.problems import Problem
from agentspec.server.settings import ServerSettings, is_loopback

_OPEN = ("/", "/health", "/page/page.css", "/page/page.js", "/page/icon.svg")


class ErrorDetail(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(BaseModel):
    """An answer that tells an error."""

    error: ErrorDetail


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody, "description": words}
    for status, words in {
        400: "A field can't be honoured",
        401: "The key is missing or wrong",
        403: "The request was meant for another host",
        404: "No such model",
        413: "The body is too large",
        422: "The grammar allows no token at some place",
        429: "The queue is full",
        500: "The server failed",
        503: "The model is still being loaded",
        504: "The request ran out of time",
    }.items()
}
"""Statuses that every route of an API may answer with, for the OpenAPI document."""

EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "An answer",
        "content": {
            "text/event-stream": {
                "schema": {
                    "type": "object",
                    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
                    "required": ["data"],
                }
            }
        },
    }
}
"""What a route answers with besides JSON, if it streams."""


def desk_for(request: Request, model: str | None = None) -> Desk:
    """The desk of the app, for a request that asks for a model.

    Raises:
        Problem: The model is still being loaded, or has another name.
    """
    desk: Desk | None = request.app.state.desk
    settings: ServerSettings = request.app.state.settings
    if desk is None:
        raise Problem(503, "the model is still being loaded: see /health", "server_error", retry_after_s=2)
    if model is not None and model not in settings.model_names:
        names = ", ".join(settings.model_names)
        raise Problem(404, f"no model is called {model!r}; there are: {names}", param="model", code="model_not_found")
    return desk


class Door:
    """Refuses requests without the key, and, where none is needed, those that a page of another host sends.

    A page whose name was made to point at this machine still sends that name as its host, so it is told by it.
    """

    def __init__(self, app: ASGIApp, *, settings: ServerSettings) -> None:
        self._app = app
        self._key = None if settings.api_key is None else settings.api_key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "http" and (problem := self._problem(scope)):
            respond = scope["app"].state.respond
            await respond(Request(scope), problem)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _problem(self, scope: Mapping[str, Any]) -> Problem | None:
        headers = Headers(raw=list(scope["headers"]))
        if self._key is None:
            host = headers.get("host", "")
            if is_loopback(_name(host)):
                return None
            return Problem(403, f"this server is for its own machine, not for host {host!r}", code="wrong_host")
        if scope["path"] in _OPEN or scope["method"] == "OPTIONS":
            return None
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        shown = bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        if secrets.compare_digest(shown.encode(), self._key):
            return None
        what = "is wrong" if shown else "is missing: send Authorization: Bearer KEY"
        return Problem(401, f"the API key {what}", "authentication_error", code="invalid_api_key")


def _name(host: str) -> str:
    """A host header without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host
