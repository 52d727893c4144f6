"""Errors as Anthropic writes them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from agentspec.server import door
from agentspec.server.problems import Problem

PATH = "/v1/messages"

_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


class ErrorDetail(BaseModel):
    """What went wrong."""

    type: str
    message: str


class ErrorBody(BaseModel):
    """An answer that tells an error."""

    type: Literal["error"]
    error: ErrorDetail


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {**told, "model": ErrorBody} for status, told in door.PROBLEMS.items()
}
"""Statuses that every route of this API may answer with, for the OpenAPI document."""


def error_body(problem: Problem) -> dict[str, Any]:
    """The body of an answer that tells a problem."""
    kind = _KINDS.get(problem.status, "api_error" if problem.status >= 500 else "invalid_request_error")
    message = problem.message
    if problem.code == "context_length_exceeded":
        message = f"prompt is too long: {message}"  # by these words clients know that they have to shorten it
    return {"type": "error", "error": {"type": kind, "message": message}}
