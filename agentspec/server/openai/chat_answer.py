"""Answers of `/v1/chat/completions`, whole and in chunks, with OpenAI's own types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import time
from typing import Any, Literal, cast
from uuid import uuid4

from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessage
from openai.types.chat.chat_completion import Choice, ChoiceLogprobs
from openai.types.chat.chat_completion_chunk import Choice as ChunkChoice
from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall, ChoiceDeltaToolCallFunction
from openai.types.chat.chat_completion_chunk import ChoiceLogprobs as ChunkLogprobs
from openai.types.chat.chat_completion_message_function_tool_call import ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion_token_logprob import ChatCompletionTokenLogprob, TopLogprob

from agentspec.chat.base import BrokenCallDelta, Delta, MessageBuilder, ReasoningDelta, TextDelta, ToolCallDelta
from agentspec.engine.request import TokenLogprobs
from agentspec.local.result import Result, StreamEvent
from agentspec.server.openai.fields import usage_of

Spell = Callable[[int], bytes]
Finish = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """Writes one request's answer.

    Attributes:
        model: What the answer says that the model is called.
        spell: A token's bytes, for log-probabilities.
    """

    model: str
    spell: Spell
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time()))

    def whole(self, results: Sequence[Result], deltas: Sequence[Sequence[Delta]]) -> dict[str, Any]:
        """The completion, from each answer's result and deltas: the same as its chunks added up."""
        choices = [
            Choice(
                index=index,
                message=_message(found),
                finish_reason=_finish(result),
                logprobs=self._logprobs(result.logprobs, ChoiceLogprobs),
            )
            for index, (result, found) in enumerate(zip(results, deltas, strict=True))
        ]
        completion = ChatCompletion(
            id=self.id,
            created=self.created,
            model=self.model,
            object="chat.completion",
            choices=choices,
            usage=usage_of(results),
        )
        return completion.to_dict(mode="json", exclude_unset=True)

    def opening(self, index: int) -> dict[str, Any]:
        """The first chunk of an answer, before anything is written."""
        return self._chunk(index, ChoiceDelta(role="assistant", content=""))

    def chunks(self, event: StreamEvent) -> Iterator[dict[str, Any]]:
        """What an event adds; its log-probabilities go with the first chunk, or with one of their own."""
        logprobs = self._logprobs(event.logprobs, ChunkLogprobs)
        deltas = [_wire(_told(delta)) for delta in event.deltas]
        wires = [delta for delta in deltas if delta is not None] or ([ChoiceDelta()] if logprobs else [])
        for place, delta in enumerate(wires):
            yield self._chunk(event.index, delta, logprobs=None if place else logprobs)
        if event.result is not None:
            yield self._chunk(event.index, ChoiceDelta(), finish=_finish(event.result))

    def usage(self, results: Sequence[Result]) -> dict[str, Any]:
        """The last chunk, where it was asked for."""
        return self._dump(self._envelope([], usage=usage_of(results)))

    def _chunk(
        self, index: int, delta: ChoiceDelta, *, logprobs: ChunkLogprobs | None = None, finish: Finish | None = None
    ) -> dict[str, Any]:
        choice = ChunkChoice(index=index, delta=delta, finish_reason=finish, logprobs=logprobs)
        return self._dump(self._envelope([choice]))

    def _envelope(self, choices: list[ChunkChoice], **more: Any) -> ChatCompletionChunk:  # noqa: ANN401
        return ChatCompletionChunk(
            id=self.id,
            created=self.created,
            model=self.model,
            object="chat.completion.chunk",
            choices=choices,
            **more,
        )

    def _dump(self, chunk: ChatCompletionChunk) -> dict[str, Any]:
        return chunk.to_dict(mode="json", exclude_unset=True)

    def _logprobs(self, found: Iterable[TokenLogprobs], kind: type[Any]) -> Any:  # noqa: ANN401
        content = [token_logprob(each, self.spell) for each in found]
        return kind(content=content) if content else None


def token_logprob(found: TokenLogprobs, spell: Spell) -> ChatCompletionTokenLogprob:
    """A token's log-probability with its text, which may be half of a character, and its bytes."""

    def told(token: int) -> dict[str, Any]:
        spelled = spell(token)
        return {"token": spelled.decode(errors="replace"), "bytes": list(spelled)}

    top = [TopLogprob(logprob=chance, **told(token)) for token, chance in found.top.items()]
    return ChatCompletionTokenLogprob(logprob=found.logprob, top_logprobs=top, **told(found.token))


def _finish(result: Result) -> Finish:
    return cast(Finish, result.finish_reason)


def _wire(delta: Delta) -> ChoiceDelta | None:
    match delta:
        case TextDelta(text):
            return ChoiceDelta(content=text)
        case ReasoningDelta(text):
            return ChoiceDelta.model_validate({"reasoning_content": text})
        case ToolCallDelta(index, id, name, arguments):
            function = ChoiceDeltaToolCallFunction(arguments=arguments)
            call = ChoiceDeltaToolCall(index=index, function=function)
            if id is not None:
                function = ChoiceDeltaToolCallFunction(name=name, arguments=arguments)
                call = ChoiceDeltaToolCall(index=index, id=id, type="function", function=function)
            return ChoiceDelta(tool_calls=[call])
        case BrokenCallDelta():
            return None


def _message(deltas: Sequence[Delta]) -> ChatCompletionMessage:
    """The message that the deltas add up to: calls that were cut off are in it, as far as they go."""
    built = MessageBuilder()
    built.add(map(_told, deltas))
    message: dict[str, Any] = {"role": "assistant", "content": built.text or (None if built.calls else "")}
    message["refusal"] = None
    if built.reasoning:
        message["reasoning_content"] = built.reasoning
    if built.calls:
        message["tool_calls"] = [
            ChatCompletionMessageFunctionToolCall.model_validate(call.wire) for call in built.calls
        ]
    return ChatCompletionMessage.model_validate(message)


def _told(delta: Delta) -> Delta:
    """A delta as clients see it: what can't be read as a call is text, since nothing that was written may vanish."""
    return TextDelta(delta.text) if isinstance(delta, BrokenCallDelta) and delta.index is None else delta
