"""What a response of `/v1/responses` says beside its output, with OpenAI's own types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import time
from typing import Any, Literal, TypeVar
from uuid import uuid4

from openai.types.responses import (
    FunctionTool,
    Response,
    ResponseError,
    ResponseFormatTextConfig,
    ResponseFormatTextJSONSchemaConfig,
    ResponseOutputItem,
    ResponseTextConfig,
    ResponseUsage,
    ToolChoiceAllowed,
    ToolChoiceFunction,
)
from openai.types.responses.response import IncompleteDetails, ToolChoice
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails
from openai.types.shared import Reasoning, ResponseFormatJSONObject, ResponseFormatText
from pydantic import BaseModel, ValidationError

from agentspec.config import SamplingParams
from agentspec.local.result import Result
from agentspec.segments import Segment
from agentspec.server.openai.responses_request import ResponsesRequest
from agentspec.server.problems import Problem, bad_request

Status = Literal["in_progress", "completed", "incomplete", "failed"]
_Model = TypeVar("_Model", bound=BaseModel)


class ResponseFrame:
    """Writes the response around one request's output.

    Args:
        asked: The request.
        params: As the engine takes them.

    Raises:
        Problem: The request holds what an answer can't repeat.
    """

    def __init__(self, asked: ResponsesRequest, params: SamplingParams) -> None:
        self._asked = asked
        self._params = params
        self._id = f"resp_{uuid4().hex}"
        self._created = int(time())
        self._text = ResponseTextConfig(format=_format((asked.text or {}).get("format")))
        self._tool_choice = _tool_choice(asked.tool_choice)
        self._tools = [
            _typed(FunctionTool, {"strict": True, **tool}, f"tools[{index}]")
            for index, tool in enumerate(asked.tools or ())
        ]

    def response(
        self,
        status: Status,
        output: Sequence[ResponseOutputItem] = (),
        *,
        result: Result | None = None,
        problem: Problem | None = None,
    ) -> Response:
        """The response as it stands.

        Args:
            status: Of the whole.
            output: Its items so far.
            result: Of the answer, once that is over.
            problem: That ended it.
        """
        asked = self._asked
        return Response(
            id=self._id,
            object="response",
            created_at=self._created,
            completed_at=int(time()) if status == "completed" else None,
            status=status,
            background=False,
            error=None if problem is None else _error(problem),
            incomplete_details=IncompleteDetails(reason="max_output_tokens") if status == "incomplete" else None,
            instructions=asked.instructions,
            max_output_tokens=asked.max_output_tokens,
            max_tool_calls=None,
            metadata=asked.metadata or {},
            model=asked.model,
            output=list(output),
            parallel_tool_calls=asked.parallel_tool_calls is not False,
            previous_response_id=asked.previous_response_id,
            reasoning=Reasoning(effort=None, summary=None),
            service_tier="default",
            temperature=self._params.temperature,
            text=self._text,
            tool_choice=self._tool_choice,
            tools=list(self._tools),
            top_logprobs=asked.top_logprobs or 0,
            top_p=self._params.top_p,
            truncation="disabled",
            usage=None if result is None else _usage(result),
            user=asked.user,
        )


def _typed(kind: type[_Model], value: object, place: str) -> _Model:
    """What a request holds, as OpenAI's type has it."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join([place, *map(str, first["loc"])])
        raise bad_request(f"{field}: {first['msg'][:1].lower()}{first['msg'][1:]}", field) from error


def _error(problem: Problem) -> ResponseError:
    return ResponseError(code="invalid_prompt" if problem.status < 500 else "server_error", message=problem.message)


def _format(given: Mapping[str, Any] | None) -> ResponseFormatTextConfig:
    kind = "text" if given is None else given["type"]
    if given is None or kind == "text":
        return ResponseFormatText(type="text")
    if kind == "json_object":
        return ResponseFormatJSONObject(type="json_object")
    schema = {"name": "answer", **given.get("json_schema", given), "type": "json_schema"}
    return _typed(ResponseFormatTextJSONSchemaConfig, schema, "text.format")


def _tool_choice(given: Any) -> ToolChoice:  # noqa: ANN401
    match given:
        case None | "auto":
            return "auto"
        case "none":
            return "none"
        case "required" | "any":
            return "required"
        case str():
            return ToolChoiceFunction(type="function", name=given)
        case {"type": "allowed_tools"}:
            inner = given.get("allowed_tools", given)
            named = {"mode": "auto", **inner, "type": "allowed_tools"}
            return _typed(ToolChoiceAllowed, named, "tool_choice")
        case {"type": "function"}:
            return _typed(ToolChoiceFunction, {**given.get("function", given), "type": "function"}, "tool_choice")
        case _:
            known = "auto, none, required, a function or allowed_tools"
            raise bad_request(f"tool_choice must be {known}, not {given!r}", "tool_choice")


def _usage(result: Result) -> ResponseUsage:
    usage, thoughts = result.usage, result.stats.segments.get(Segment.REASONING)
    return ResponseUsage(
        input_tokens=usage.prompt_tokens,
        input_tokens_details=InputTokensDetails(cached_tokens=usage.cached_tokens, cache_write_tokens=0),
        output_tokens=usage.completion_tokens,
        output_tokens_details=OutputTokensDetails(reasoning_tokens=thoughts["tokens"] if thoughts else 0),
        total_tokens=usage.total_tokens,
    )
