"""Errors as OpenAI writes them."""

from __future__ import annotations

from typing import Any

from agentspec.server.problems import Problem


def error_body(problem: Problem) -> dict[str, Any]:
    """The body of an answer that tells a problem."""
    error = {"message": problem.message, "type": problem.kind, "param": problem.param, "code": problem.code}
    return {"error": error}
