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
    Tool,
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

Output = Sequence[ResponseOutputItem]
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
        self._begun = Response(
            id=f"resp_{uuid4().hex}",
            object="response",
            created_at=int(time()),
            completed_at=None,
            status="in_progress",
            background=False,
            error=None,
            incomplete_details=None,
            instructions=asked.instructions,
            max_output_tokens=asked.max_output_tokens,
            max_tool_calls=None,
            metadata=asked.metadata or {},
            model=asked.model,
            output=[],
            parallel_tool_calls=asked.parallel_tool_calls is not False,
            previous_response_id=asked.previous_response_id,
            reasoning=Reasoning(effort=None, summary=None),
            service_tier="default",
            temperature=params.temperature,
            text=ResponseTextConfig(format=_format((asked.text or {}).get("format"))),
            tool_choice=_tool_choice(asked.tool_choice),
            tools=[_tool(tool, f"tools[{index}]") for index, tool in enumerate(asked.tools or ())],
            top_logprobs=asked.top_logprobs or 0,
            top_p=params.top_p,
            truncation="disabled",
            usage=None,
            user=asked.user,
        )

    def begun(self) -> Response:
        """The response before anything is written."""
        return self._begun

    def ended(self, status: Literal["completed", "incomplete"], output: Output, result: Result) -> Response:
        """The response with all of its output."""
        cut = status == "incomplete"
        return self._with(
            status=status,
            completed_at=None if cut else int(time()),
            incomplete_details=IncompleteDetails(reason="max_output_tokens") if cut else None,
            output=list(output),
            usage=_usage(result),
        )

    def failed(self, output: Output, problem: Problem) -> Response:
        """The response with what there is of its output."""
        code: Literal["invalid_prompt", "server_error"] = "invalid_prompt" if problem.status < 500 else "server_error"
        error = ResponseError(code=code, message=problem.message)
        return self._with(status="failed", error=error, output=list(output))

    def _with(self, **changes: object) -> Response:
        return self._begun.model_copy(update=changes)


def _typed(kind: type[_Model], value: object, place: str) -> _Model:
    """What a request holds, as OpenAI's type has it."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join([place, *map(str, first["loc"])])
        raise bad_request(f"{field}: {first['msg'][:1].lower()}{first['msg'][1:]}", field) from error


def _tool(given: Mapping[str, Any], place: str) -> Tool:
    return _typed(FunctionTool, {"strict": True, **given}, place)


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
