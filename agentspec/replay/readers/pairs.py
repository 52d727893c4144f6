"""Logs of calls: one record a call, with the body of the request and that of the answer.

Source: what proxies and clients write: `{"request", "response"}` with either body as an object or as its text; the logs
of OpenHands (`log_completions`) and LiteLLM, with `messages`, `tools` or `kwargs` beside the `response`; stored
completions and responses, whose one object holds both. A body may be of OpenAI's Chat Completions, its Responses, or
Anthropic's Messages, and an answer may be streamed: a list of events, or their text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.readers.base import Format, Item, Record, name_at, nothing, object_at, parsed
from agentspec.replay.readers.exchange import Exchanges, is_answer, is_request

_EVENTS = ("data:", "event:")


class Reader:
    """Reads calls of one file."""

    def __init__(self) -> None:
        self._exchanges = Exchanges()

    def feed(self, record: Record) -> Iterable[Item]:
        """The calls of this record."""
        found = _bodies(record.value)
        if found is None:
            raise TraceError("the request asks no model")
        request, answer = found
        status = record.value.get("status_code", _status(answer))
        if isinstance(status, int) and status >= 400:
            raise TraceError(f"the answer has status {status}")
        trace_id = name_at(record.value, "trace_id", "session_id", "conversation_id") or f"line {record.line}"
        return self._exchanges.calls(record, request, answer, trace_id)

    def finish(self) -> Iterable[Item]:
        """Nothing."""
        return nothing()


def _status(answer: object) -> object:
    return answer.get("status_code") if isinstance(answer, dict) else None


def _bodies(value: dict[str, Any]) -> tuple[dict[str, Any], Any] | None:
    """The body of the request and the answer; None: it is none of a model's."""
    if "response" not in value:
        return (value, value) if is_request(value) and is_answer(value) else None
    request = parsed(value.get("request", value))
    if isinstance(request, dict) and not is_request(request):
        request = parsed(request.get("body", request))
    if not isinstance(request, dict) or not is_request(request):
        return None
    if "tools" not in request:
        request = {**request, "tools": object_at(value, "kwargs").get("tools")}
    answer = parsed(value["response"])
    if isinstance(answer, dict) and not is_answer(answer):
        answer = parsed(answer.get("body", answer))
    return request, answer


def _recognises(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    if "response" in value:
        answer = parsed(value["response"])
        told = isinstance(answer, dict | list) or str(answer).lstrip().startswith(_EVENTS)
        return told and ("request" in value or is_request(value))
    return is_request(value) and is_answer(value)


FORMAT = Format(
    "call log",
    "requests to OpenAI's Chat Completions or Responses, or Anthropic's Messages, with their answers",
    "request and response; or messages or input with response; or messages or input with choices or output",
    _recognises,
    Reader,
)
