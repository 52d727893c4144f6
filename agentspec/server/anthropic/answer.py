"""Answers of `/v1/messages`, whole and as events, with Anthropic's own types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from anthropic.types import (
    InputJSONDelta,
    Message,
    MessageDeltaUsage,
    RawContentBlockDeltaEvent,
    RawContentBlockStartEvent,
    RawContentBlockStopEvent,
    RawMessageDeltaEvent,
    RawMessageStartEvent,
    RawMessageStopEvent,
    SignatureDelta,
    StopReason,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
    Usage,
)
from anthropic.types.raw_message_delta_event import Delta as EndDelta
from jiter import from_json

from agentspec.chat import base
from agentspec.local.result import Result

SIGNATURE = "agentspec"
"""Stands by thoughts: nothing checks it, but clients pass no thoughts back that have none."""

Event = dict[str, Any]
_Block = TextBlock | ThinkingBlock | ToolUseBlock
_Delta = TextDelta | ThinkingDelta | InputJSONDelta
_REASONS: dict[str, StopReason] = {"length": "max_tokens", "tool_calls": "tool_use"}


@dataclass(slots=True)
class MessageAnswer:
    """Writes one request's answer.

    Attributes:
        model: What the answer says that the model is called.
    """

    model: str
    id: str = field(default_factory=lambda: f"msg_{uuid4().hex}")
    _blocks: list[_Block] = field(default_factory=list)
    _inputs: dict[int, str] = field(default_factory=dict)
    _open: bool = False

    def opening(self, prompt_tokens: int) -> Event:
        """The first event, before anything is written; how much of the prompt was cached is told at the end."""
        usage = Usage(input_tokens=prompt_tokens, output_tokens=0)
        message = self._message([], usage, stop_reason=None, stop_sequence=None)
        return RawMessageStartEvent(type="message_start", message=message).to_dict(mode="json")

    def events(self, deltas: Iterable[base.Delta]) -> Iterator[Event]:
        """What is new: blocks that begin, more of the last one, and blocks that end."""
        for delta in deltas:
            block, more = _read(delta)
            if block is not None and not self._goes_on(block):
                yield from self._close()
                yield self._begin(block)
            if more is not None:
                yield self._add(more)

    def closing(self, result: Result) -> Iterator[Event]:
        """The last events."""
        yield from self._close()
        usage = MessageDeltaUsage.model_validate(_usage(result).to_dict())
        reason, sequence = _end(result)
        delta = EndDelta(stop_reason=reason, stop_sequence=sequence)
        yield RawMessageDeltaEvent(type="message_delta", delta=delta, usage=usage).to_dict(mode="json")
        yield RawMessageStopEvent(type="message_stop").to_dict(mode="json")

    def whole(self, result: Result) -> Event:
        """The message that all events add up to.

        A call that was cut off by the length limit has of its input what can be read so far, as clients read it from
        the events; nothing, where that is no JSON.
        """
        for _ in self._close():
            pass
        for index, text in self._inputs.items():
            block = self._blocks[index]
            assert isinstance(block, ToolUseBlock), "only calls have inputs"
            block.input = _readable(text)
        reason, sequence = _end(result)
        message = self._message(self._blocks, _usage(result), stop_reason=reason, stop_sequence=sequence)
        return message.to_dict(mode="json")

    def _message(self, content: Sequence[_Block], usage: Usage, **end: Any) -> Message:  # noqa: ANN401
        return Message(
            id=self.id, type="message", role="assistant", model=self.model, content=[*content], usage=usage, **end
        )

    def _goes_on(self, block: _Block) -> bool:
        """Whether the last block is of this kind, and open; each call has one of its own."""
        return self._open and block.type != "tool_use" and self._blocks[-1].type == block.type

    def _begin(self, block: _Block) -> Event:
        self._blocks.append(block)
        self._open = True
        event = RawContentBlockStartEvent(type="content_block_start", index=len(self._blocks) - 1, content_block=block)
        return event.to_dict(mode="json")

    def _add(self, delta: _Delta) -> Event:
        index = len(self._blocks) - 1
        match self._blocks[-1], delta:
            case TextBlock() as block, TextDelta():
                block.text += delta.text
            case ThinkingBlock() as block, ThinkingDelta():
                block.thinking += delta.thinking
            case ToolUseBlock(), InputJSONDelta():
                self._inputs[index] = self._inputs.get(index, "") + delta.partial_json
        return _more(index, delta)

    def _close(self) -> Iterator[Event]:
        if not self._open:
            return
        self._open, index = False, len(self._blocks) - 1
        if isinstance(block := self._blocks[-1], ThinkingBlock):
            block.signature = SIGNATURE
            yield _more(index, SignatureDelta(type="signature_delta", signature=SIGNATURE))
        yield RawContentBlockStopEvent(type="content_block_stop", index=index).to_dict(mode="json")


def _more(index: int, delta: _Delta | SignatureDelta) -> Event:
    return RawContentBlockDeltaEvent(type="content_block_delta", index=index, delta=delta).to_dict(mode="json")


def _read(delta: base.Delta) -> tuple[_Block | None, _Delta | None]:
    """The block that a delta belongs to, None: the one that is open, and what it adds to it."""
    match delta:
        case base.TextDelta(text) | base.BrokenCallDelta(None, text) if text:
            return TextBlock(type="text", text=""), TextDelta(type="text_delta", text=text)
        case base.ReasoningDelta(text):
            block = ThinkingBlock(type="thinking", thinking="", signature="")
            return block, ThinkingDelta(type="thinking_delta", thinking=text)
        case base.ToolCallDelta(_, id, name, arguments):
            call = None if id is None else ToolUseBlock(type="tool_use", id=id, name=name or "", input={})
            return call, InputJSONDelta(type="input_json_delta", partial_json=arguments) if arguments else None
        case _:
            return None, None


def _readable(text: str) -> dict[str, object]:
    try:
        value = from_json(text.encode(), partial_mode=True)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _end(result: Result) -> tuple[StopReason, str | None]:
    if result.finish_reason == "stop" and result.stop_text is not None:
        return "stop_sequence", result.stop_text
    return _REASONS.get(result.finish_reason, "end_turn"), None


def _usage(result: Result) -> Usage:
    """Token counts: Anthropic does not count cached tokens among those of the input."""
    usage = result.usage
    return Usage(
        input_tokens=usage.prompt_tokens - usage.cached_tokens,
        cache_creation_input_tokens=0,
        cache_read_input_tokens=usage.cached_tokens,
        output_tokens=usage.completion_tokens,
    )
