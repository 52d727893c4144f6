"""A request to a model's API and what came back, whichever of the APIs it is: what cassettes and logs of calls hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Call, Message, Said, Setting
from agentspec.replay.readers import anthropic_api, chat_api, responses_api
from agentspec.replay.readers.base import Record, name_at
from agentspec.replay.readers.messages import openai_said

_MOST_KEPT = 1000  # responses that a later one may go on from


def is_request(body: object) -> bool:
    """Whether a body asks a model something in one of the APIs."""
    return isinstance(body, dict) and (
        isinstance(body.get("messages"), list) or isinstance(body.get("input"), list | str)
    )


def is_answer(body: object) -> bool:
    """Whether a body is a model's answer in one of the APIs."""
    return isinstance(body, dict) and any(isinstance(body.get(key), list) for key in ("choices", "output", "content"))


class Exchanges:
    """Reads the exchanges of one file, and keeps what a later one of the Responses API goes on from by name."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Message, ...]] = {}

    def calls(self, record: Record, request: Mapping[str, Any], answer: object, trace_id: str) -> list[Call]:
        """The calls of a request and its answer: one, or as many as the answer has choices.

        Args:
            record: Where they were recorded.
            request: The body.
            answer: The body; or its text, of JSON or of server-sent events; or the events.
            trace_id: Of the conversation, unless it goes on from an earlier one.

        Raises:
            TraceError: They can't be used.
        """
        messages, setting, said = self._read(request, _body(answer))
        messages, said = _without_prefill(messages, said)
        return [
            Call(
                file=record.file,
                line=record.line,
                trace_id=f"{trace_id} choice {place}" if place > 1 else trace_id,
                messages=messages,
                answer=each,
                setting=setting,
            )
            for place, each in enumerate(said, 1)
        ]

    def _read(
        self, request: Mapping[str, Any], body: Mapping[str, Any]
    ) -> tuple[tuple[Message, ...], Setting, list[Said]]:
        if isinstance(body.get("output"), list):
            return self._response(request, body)
        if isinstance(body.get("choices"), list):
            return *chat_api.request(request), chat_api.answers(body)
        if isinstance(body.get("content"), list):
            return *anthropic_api.request(request), [anthropic_api.answer(body)]
        message = body.get("message", body)
        if isinstance(message, dict) and message.get("role") == "assistant":
            return *chat_api.request(request), [openai_said(message)]
        raise TraceError("the answer is an error" if body.get("error") else "the answer is of no known API")

    def _response(
        self, request: Mapping[str, Any], body: Mapping[str, Any]
    ) -> tuple[tuple[Message, ...], Setting, list[Said]]:
        before = name_at(request, "previous_response_id")
        if before and before not in self._kept:
            raise TraceError("it goes on from a response that is not in the file")
        messages, setting = responses_api.request(request, self._kept.get(before, ()))
        said = responses_api.answer(body)
        told = messages[1:] if request.get("instructions") else messages
        self._kept[name_at(body, "id")] = (*told, said.message)
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return messages, setting, [said]


def _without_prefill(messages: tuple[Message, ...], said: list[Said]) -> tuple[tuple[Message, ...], list[Said]]:
    """The messages without a last one of the assistant's, which the answers go on from and now begin with."""
    if len(messages) < 2 or messages[-1].get("role") != "assistant" or messages[-1].get("tool_calls"):
        return messages, said
    begun = messages[-1].get("content") or ""
    if not isinstance(begun, str):
        raise TraceError("it goes on from an answer that is no text")
    return messages[:-1], [
        Said({**each.message, "content": begun + (each.message.get("content") or "")}, approximate=True)
        for each in said
    ]


def _body(answer: object) -> dict[str, Any]:
    if isinstance(answer, str):
        answer = _read_text(answer)
    if isinstance(answer, list):
        answer = _assembled([event for event in answer if isinstance(event, dict)])
    if not isinstance(answer, dict):
        raise TraceError("the answer is not a JSON object")
    return answer


def _read_text(text: str) -> Any:  # noqa: ANN401
    if text.lstrip().startswith(("data:", "event:", ":")):
        return [event for line in text.splitlines() if (event := _event(line)) is not None]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise TraceError("the answer is neither JSON nor server-sent events") from None


def _event(line: str) -> Any:  # noqa: ANN401
    """What a line of server-sent events holds; None: no JSON."""
    if not line.startswith("data:"):
        return None
    try:
        return json.loads(line.removeprefix("data:"))
    except (ValueError, RecursionError):
        return None


def _assembled(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    kinds = {str(event.get("type")) for event in events}
    if "message_start" in kinds:
        return anthropic_api.assembled(events)
    if any(kind.startswith("response.") for kind in kinds):
        return responses_api.assembled(events)
    if any("choices" in event for event in events):
        return chat_api.assembled(events)
    raise TraceError("the stream is of no known API")
