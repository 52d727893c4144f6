"""The engine's answers as LangChain's messages, whole or piece by piece."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from json import loads
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, AIMessageChunk, InvalidToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCall, ToolCallChunk, invalid_tool_call, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from agentspec.chat.base import BrokenCallDelta, Delta, ReasoningDelta, TextDelta, ToolCallDelta
from agentspec.langchain.messages import REASONING

if TYPE_CHECKING:
    from agentspec.engine.request import TokenLogprobs
    from agentspec.local.result import Result, StreamEvent, Usage

PROVIDER = "agentspec"


class Answer:
    """One call's answer on its way to LangChain.

    Args:
        model: The name that traces show.
        spell: A token's text as bytes, see `Engine.spell`.
        version: "v1": pieces are LangChain's content blocks, else text.
    """

    def __init__(self, model: str, spell: Callable[[int], bytes], version: str | None = None) -> None:
        self._model = model
        self._spell = spell
        self._version = {"output_version": "v1"} if version == "v1" else {}
        self._blocks: dict[str | int, int] = {}
        """By a block's kind, or a call's place, its index among all blocks."""
        self._places: dict[int, int] = {}
        """By a call's index its place among all calls, the broken ones too."""
        self._written: dict[int, str] = {}
        """The arguments of each call so far, by place."""

    def whole(self, result: Result) -> ChatResult:
        """All at once: a generation for each of the `n`."""
        return ChatResult(generations=[self._generation(each) for each in (result, *result.alternatives)])

    def more(self, event: StreamEvent) -> list[ChatGenerationChunk]:
        """What a piece of the answer adds: one chunk, or none where nothing is to be shown yet.

        The last one alone has usage, finish reason and statistics.

        Args:
            event: Of one stream, in order.
        """
        text = "".join(delta.text for delta in event.deltas if isinstance(delta, TextDelta))
        thoughts = "".join(delta.text for delta in event.deltas if isinstance(delta, ReasoningDelta))
        calls = self._calls(event.deltas)
        result = event.result
        if not (text or thoughts or calls or event.logprobs or result):
            return []
        message = AIMessageChunk(
            content=self._content(text, thoughts, calls),
            additional_kwargs=_thoughts(thoughts),
            tool_call_chunks=calls,
            usage_metadata=_usage(result.usage) if result else None,
            response_metadata=self._version | (self._metadata(result) if result else {}),
            chunk_position="last" if result else None,
        )
        return [ChatGenerationChunk(message=message, generation_info=self._info(event.logprobs, result))]

    def _content(self, text: str, thoughts: str, calls: Sequence[ToolCallChunk]) -> str | list[str | dict[str, Any]]:
        """LangChain would number the blocks itself, apart from the calls, and join a call to the text of its number."""
        if not self._version:
            return text
        blocks: list[tuple[str | int, dict[str, Any]]] = []
        if thoughts:
            blocks.append(("reasoning", {"type": "reasoning", "reasoning": thoughts}))
        if text:
            blocks.append(("text", {"type": "text", "text": text}))
        blocks += [(call["index"] or 0, {**call}) for call in calls]
        return [{**block, "index": self._blocks.setdefault(key, len(self._blocks))} for key, block in blocks]

    def _generation(self, result: Result) -> ChatGeneration:
        """Calls that were cut off or can't be read are its `invalid_tool_calls`."""
        message = result.message
        return ChatGeneration(
            message=AIMessage(
                content=message["content"] or "",
                additional_kwargs=_thoughts(message.get(REASONING, "")),
                tool_calls=[_call(call) for call in message.get("tool_calls", ())],
                invalid_tool_calls=[_invalid_call(call) for call in message.get("invalid_tool_calls", ())],
                usage_metadata=_usage(result.usage),
                response_metadata=self._metadata(result),
            ),
            generation_info=self._info(result.logprobs, result),
        )

    def _calls(self, deltas: Sequence[Delta]) -> list[ToolCallChunk]:
        """One chunk a call, since LangChain joins chunks of different messages only."""
        heads: dict[int, ToolCallDelta] = {}
        pieces: dict[int, str] = {}
        for delta in deltas:
            if not isinstance(delta, ToolCallDelta | BrokenCallDelta):
                continue
            place = self._place(delta.index)
            if isinstance(delta, BrokenCallDelta):
                unseen = delta.text if delta.index is None else ""
                piece = unseen + _spoiler(self._written.get(place, "") + unseen)
            else:
                piece = delta.arguments
                if delta.name is not None:
                    heads[place] = delta
            pieces[place] = pieces.get(place, "") + piece
            self._written[place] = self._written.get(place, "") + piece
        return [
            tool_call_chunk(
                index=place,
                args=piece,
                id=heads[place].id if place in heads else None,
                name=heads[place].name if place in heads else None,
            )
            for place, piece in pieces.items()
        ]

    def _place(self, index: int | None) -> int:
        new = len(self._written)
        return new if index is None else self._places.setdefault(index, new)

    def _metadata(self, result: Result) -> dict[str, Any]:
        statistics = {**result.stats.to_dict(), "seed": result.seed}
        return {"model_name": self._model, "model_provider": PROVIDER, PROVIDER: statistics}

    def _info(self, logprobs: Sequence[TokenLogprobs], result: Result | None) -> dict[str, Any]:
        info: dict[str, Any] = {"finish_reason": result.finish_reason} if result else {}
        return info | ({"logprobs": {"content": [self._logprob(each) for each in logprobs]}} if logprobs else {})

    def _logprob(self, logprobs: TokenLogprobs) -> dict[str, Any]:
        """As OpenAI has it, and the token's id."""
        top = [{**self._token(token), "logprob": value} for token, value in logprobs.top.items()]
        return {**self._token(logprobs.token), "logprob": logprobs.logprob, "top_logprobs": top}

    def _token(self, token: int) -> dict[str, Any]:
        spelled = self._spell(token)
        return {"token": spelled.decode(errors="replace"), "bytes": list(spelled), "token_id": token}


def _thoughts(text: str) -> dict[str, Any]:
    return {REASONING: text} if text else {}


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
