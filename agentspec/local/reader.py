"""From the engine core's events back to text, deltas and, at the end, a result."""

from __future__ import annotations

from agentspec.chat.base import Delta, MessageBuilder, MessageParser
from agentspec.chat.stream import TextStream
from agentspec.engine.request import Event, Order, TokenLogprobs
from agentspec.errors import EngineError
from agentspec.local.result import AnswerEnd, Result, StreamEvent, Usage
from agentspec.trace import Stats, StepRecord


class Reader:
    """Turns one order's events into text, and at the end into a result."""

    def __init__(
        self, order: Order, parser: MessageParser, text: TextStream, ends: frozenset[int], *, rounds: bool = False
    ) -> None:
        self._order = order
        self._parser = parser
        self._stream = text
        self._ends = ends
        self._builder = MessageBuilder()
        self._tokens: list[int] = []
        self._logprobs: list[TokenLogprobs] = []
        self._text: list[str] = []
        self._rounds: list[StepRecord] | None = [] if rounds else None

    def read(self, event: Event) -> StreamEvent:
        """What the event adds.

        Raises:
            AgentSpecError: The request ended with an error.
        """
        if event.error:
            raise event.error
        self._tokens += event.tokens
        if self._rounds is not None and event.record:
            self._rounds.append(event.record)
        self._logprobs += event.logprobs
        text = "".join(self._stream.feed(token) for token in event.tokens if token not in self._ends)
        if event.finish_reason:
            text += self._stream.finish()
        self._text.append(text)
        deltas: list[Delta] = self._parser.feed(text) if text else []
        if event.finish_reason:
            deltas += self._parser.finish(cut=event.finish_reason == "length")
        self._builder.add(deltas)
        result = self._result(event) if event.finish_reason else None
        return StreamEvent(text, tuple(deltas), event.tokens, event.logprobs, result)

    def _result(self, event: Event) -> Result:
        message = self._builder.message()
        end = event.finish_reason
        if end is None or end == "error":
            raise EngineError("the engine ended a request without a reason: please report this")
        finish: AnswerEnd = "tool_calls" if end == "stop" and message.tool_calls else end
        stats, prompt = event.stats or Stats(), len(self._order.prompt)
        cached = max(prompt - stats.prefill_tokens, 0) if stats.forwards else 0
        return Result(
            tokens=tuple(self._tokens),
            text="".join(self._text),
            message=message.wire,
            finish_reason=finish,
            usage=Usage(prompt, len(self._tokens), cached),
            stats=stats,
            seed=self._order.params.seed or 0,
            logprobs=tuple(self._logprobs),
            rounds=tuple(self._rounds or ()),
            stop_text=self._stream.stop_text if end == "stop" else None,
        )
