"""What went wrong with a request, as a status and one line, whatever API it came through."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

from agentspec.errors import (
    AgentSpecError,
    ConfigError,
    GrammarDeadEndError,
    GrammarError,
    PromptError,
    PromptTooLongError,
)

_LOG = logging.getLogger(__name__)
_PLACE = re.compile(r"(?:messages|tools)\[\d+\][\w.\[\]]*")
_FIELDS = frozenset(
    "tools tool_choice parallel_tool_calls regex lark prediction stop n seed max_tokens min_tokens temperature top_p "
    "top_k min_p frequency_penalty presence_penalty repetition_penalty logit_bias logprobs bad_words "
    "stop_token_ids".split()
)
_BEGINNINGS = {
    "the JSON schema": "response_format",
    "a JSON schema": "response_format",
    "the grammar": "lark",
    "tool ": "tools",
}


@dataclass
class Problem(Exception):
    """A request that can't be answered.

    Attributes:
        status: Of HTTP.
        message: What happened, the value, what to do: one line, without paths of this machine.
        kind: OpenAI's `type`.
        param: The field that is to blame.
        code: OpenAI's `code`.
        retry_after_s: When to try again.
    """

    status: int
    message: str
    kind: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None
    retry_after_s: int | None = None

    def __post_init__(self) -> None:
        # What a client sent may be half of a character, which no answer could be encoded with.
        self.message = self.message.encode(errors="backslashreplace").decode()

    def __str__(self) -> str:
        return self.message


GONE = Problem(499, "the client went away", code="cancelled")
"""Told to those who watch; nobody is left to answer."""

NESTED = "the request holds JSON that is nested too deep to be read: put lists and objects into fewer others"
"""Told for the body, and for JSON within its texts."""


def bad_request(message: str, param: str | None = None, code: str | None = None) -> Problem:
    """The client's mistake."""
    return Problem(400, message, param=param, code=code)


def problem_of(error: Exception) -> Problem:
    """How an error is told to a client; what is no mistake of the client's is logged, and told without detail."""
    match error:
        case Problem():
            return error
        case PromptTooLongError():
            return bad_request(str(error), "messages", "context_length_exceeded")
        case GrammarDeadEndError():
            return Problem(422, str(error), "invalid_request_error", code="grammar_dead_end")
        case PromptError():
            return bad_request(str(error), _param(str(error)) or "messages")
        case GrammarError() | ConfigError():
            return bad_request(str(error), _param(str(error)))
        case RecursionError():
            return bad_request(NESTED)
        case TimeoutError():
            return Problem(504, "the request ran out of time and was cancelled", "timeout_error", code="timeout")
        case AgentSpecError():
            _LOG.error("a request failed: %r", error)
            return Problem(500, "the engine could not finish this request: see the server's log", "server_error")
        case _:
            _LOG.error("a request failed", exc_info=error)
            return Problem(500, "a fault of the server: see its log", "server_error")


def _param(message: str) -> str | None:
    """The field that an error's message speaks of: by its place, or as its first word."""
    if found := _PLACE.search(message):
        return found[0]
    first = message.split(maxsplit=1)[0].rstrip(":,")
    if first in _FIELDS:
        return first
    return next((field for beginning, field in _BEGINNINGS.items() if message.startswith(beginning)), None)
