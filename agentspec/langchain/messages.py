"""LangChain's messages to the engine's, and the engine's answers back to LangChain's messages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from json import loads
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, InvalidToolCall, convert_to_openai_messages
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCall, ToolCallChunk, invalid_tool_call, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk

from agentspec.chat.base import BrokenCallDelta, Delta, ReasoningDelta, TextDelta, ToolCallDelta
from agentspec.errors import PromptError

if TYPE_CHECKING:
    from agentspec.engine.request import TokenLogprobs
    from agentspec.local.result import Result, StreamEvent, Usage

PROVIDER = "agentspec"
_CALLS = ("tool_call", "invalid_tool_call")
_REASONING = "reasoning_content"


def openai_messages(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """The messages in OpenAI's form, their text parts as they are.

    Calls of an earlier answer that were cut off are left out: nobody ran them. Its thoughts are kept, for templates
    that show them.

    Raises:
        PromptError: A message can't be written in that form.
    """
    try:
        return [message for each in messages for message in _openai(each)]
    except ValueError as error:
        raise PromptError(" ".join(str(error).split())) from error


def _openai(message: BaseMessage) -> list[dict[str, Any]]:
    written = convert_to_openai_messages([_without_calls(message)], text_format="block")
    thoughts = message.additional_kwargs.get(_REASONING)
    return [{**each, _REASONING: thoughts} if thoughts else each for each in written]


def _without_calls(message: BaseMessage) -> BaseMessage:
    """The message without content blocks that repeat its tool calls, as `output_version="v1"` writes them."""
    if not isinstance(message, AIMessage) or isinstance(message.content, str):
        return message
    blocks = [block for block in message.content if isinstance(block, str) or block.get("type") not in _CALLS]
    return message.model_copy(update={"content": blocks})


def generation(result: Result, model: str) -> ChatGeneration:
    """A whole answer. Calls that were cut off or can't be read are its `invalid_tool_calls`."""
    message = result.message
    return ChatGeneration(
        message=AIMessage(
            content=message["content"] or "",
            additional_kwargs=_thoughts(message.get(_REASONING, "")),
            tool_calls=[_call(call) for call in message.get("tool_calls", ())],
            invalid_tool_calls=[_invalid_call(call) for call in message.get("invalid_tool_calls", ())],
            usage_metadata=_usage(result.usage),
            response_metadata=_metadata(result, model),
        ),
        generation_info=_info(result.logprobs, result),
    )


def chunks(event: StreamEvent, model: str, written: dict[int, str]) -> list[ChatGenerationChunk]:
    """What a piece of an answer adds: one chunk, or none where nothing is to be shown yet.

    The last one alone has usage, finish reason and statistics.

    Args:
        event: Of one stream, in order.
        model: The name that traces show.
        written: The arguments of each call so far, by index; brought up to date here.
    """
    text = "".join(delta.text for delta in event.deltas if isinstance(delta, TextDelta))
    thoughts = "".join(delta.text for delta in event.deltas if isinstance(delta, ReasoningDelta))
    calls = _call_chunks(event.deltas, written)
    result = event.result
    if not (text or thoughts or calls or event.logprobs or result):
        return []
    message = AIMessageChunk(
        content=text,
        additional_kwargs=_thoughts(thoughts),
        tool_call_chunks=calls,
        usage_metadata=_usage(result.usage) if result else None,
        response_metadata=_metadata(result, model) if result else {},
        chunk_position="last" if result else None,
    )
    return [ChatGenerationChunk(message=message, generation_info=_info(event.logprobs, result))]


def _thoughts(text: str) -> dict[str, Any]:
    return {_REASONING: text} if text else {}


def _call_chunks(deltas: Sequence[Delta], written: dict[int, str]) -> list[ToolCallChunk]:
    """One chunk a call, since LangChain joins chunks of different messages only."""
    heads: dict[int, ToolCallDelta] = {}
    pieces: dict[int, str] = {}
    for delta in deltas:
        if isinstance(delta, ToolCallDelta):
            if delta.name is not None:
                heads[delta.index] = delta
            piece, index = delta.arguments, delta.index
        elif isinstance(delta, BrokenCallDelta):
            index = len(written) if delta.index is None else delta.index
            unseen = delta.text if delta.index is None else ""
            piece = unseen + _spoiler(written.get(index, "") + unseen)
        else:
            continue
        pieces[index] = pieces.get(index, "") + piece
        written[index] = written.get(index, "") + piece
    return [
        tool_call_chunk(
            index=index,
            args=piece,
            id=heads[index].id if index in heads else None,
            name=heads[index].name if index in heads else None,
        )
        for index, piece in pieces.items()
    ]


def _spoiler(arguments: str) -> str:
    """An end for arguments that were cut off which no reader can complete.

    LangChain closes whatever JSON is open in a sum of chunks. Half a file's text would look like a whole call then, and
    an agent would run it; with more brackets closed than were opened it stays an invalid call.
    """
    rest = re.sub(r"\\.", "", arguments, flags=re.DOTALL)
    escape = "\\" if rest.endswith("\\") else ""
    quote = '"' if rest.count('"') % 2 else ""
    return escape + quote + "}" * (arguments.count("{") + 1)


def _call(call: Mapping[str, Any]) -> ToolCall:
    function = call["function"]
    return tool_call(name=function["name"], args=loads(function["arguments"], strict=False), id=call["id"])


def _invalid_call(call: Mapping[str, Any]) -> InvalidToolCall:
    function = call["function"]
    error = "the call was cut off, or is no call"
    return invalid_tool_call(
        name=function["name"] or None, args=function["arguments"], id=call["id"] or None, error=error
    )


def _usage(usage: Usage) -> UsageMetadata:
    return UsageMetadata(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        total_tokens=usage.total_tokens,
        input_token_details={"cache_read": usage.cached_tokens},
    )


def _metadata(result: Result, model: str) -> dict[str, Any]:
    statistics = {**result.stats.to_dict(), "seed": result.seed}
    return {"model_name": model, "model_provider": PROVIDER, PROVIDER: statistics}


def _info(logprobs: Sequence[TokenLogprobs], result: Result | None) -> dict[str, Any]:
    info: dict[str, Any] = {"finish_reason": result.finish_reason} if result else {}
    return info | ({"logprobs": {"content": [_logprob(each) for each in logprobs]}} if logprobs else {})


def _logprob(logprobs: TokenLogprobs) -> dict[str, Any]:
    top = [{"token_id": token, "logprob": value} for token, value in logprobs.top.items()]
    return {"token_id": logprobs.token, "logprob": logprobs.logprob, "top_logprobs": top}
