"""A response of `/v1/responses` as it is written: its events in their order, and the whole at the end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Literal

from openai.types.responses import (
    ResponseCompletedEvent,
    ResponseCreatedEvent,
    ResponseFailedEvent,
    ResponseIncompleteEvent,
    ResponseInProgressEvent,
    ResponseOutputItem,
    ResponseStreamEvent,
)
from openai.types.responses.response_output_text import Logprob

from agentspec.chat.base import BrokenCallDelta, Delta, ReasoningDelta, TextDelta, ToolCallDelta
from agentspec.engine.request import TokenLogprobs
from agentspec.local.result import Result, StreamEvent
from agentspec.server.openai.chat_answer import Spell, token_logprob
from agentspec.server.openai.responses_answer import ResponseFrame
from agentspec.server.openai.responses_output import CallItem, OutputItem, Place, Status, TextItem, ThoughtsItem
from agentspec.server.problems import Problem

Wire = dict[str, Any]


class ResponseWriter:
    """Writes one response. Its events are the same whoever reads them; added up they are the whole.

    Attributes:
        whole: The response once it is over, as it is sent; None before.

    Args:
        frame: The response around the output.
        spell: A token's bytes, for log-probabilities.
    """

    def __init__(self, frame: ResponseFrame, spell: Spell) -> None:
        self.whole: Wire | None = None
        self._frame = frame
        self._spell = spell
        self._numbers = count()
        self._output: list[ResponseOutputItem] = []
        self._open: OutputItem | None = None
        self._logprobs: list[Logprob] = []

    def opening(self) -> list[Wire]:
        """The events before anything is written."""
        response = self._frame.begun()
        created = ResponseCreatedEvent(type="response.created", sequence_number=next(self._numbers), response=response)
        going = ResponseInProgressEvent(
            type="response.in_progress", sequence_number=next(self._numbers), response=response
        )
        return [_wire(created), _wire(going)]

    def wrote(self, event: StreamEvent) -> list[Wire]:
        """The events of more of the answer.

        The log-probabilities of tokens go with the text that comes with them or next; those of calls and thoughts are
        dropped.
        """
        self._logprobs += [_logprob(found, self._spell) for found in event.logprobs]
        events = [told for delta in event.deltas for told in self._delta(delta)]
        if self._open is not None and not isinstance(self._open, TextItem):
            self._logprobs.clear()
        if event.result is not None:
            events += self._end(event.result)
        wires = [_wire(told) for told in events]
        if event.result is not None:
            self.whole = wires[-1]["response"]
        return wires

    def failed(self, problem: Problem) -> Wire:
        """The event that ends a response which could not be finished."""
        items = self._output if self._open is None else [*self._output, self._open.item("incomplete")]
        response = self._frame.failed(items, problem)
        return _wire(
            ResponseFailedEvent(type="response.failed", sequence_number=next(self._numbers), response=response)
        )

    def _delta(self, delta: Delta) -> Iterator[ResponseStreamEvent]:
        match delta:
            case TextDelta(text) | BrokenCallDelta(None, text):  # nothing that was written may vanish
                yield from self._text(text)
            case ReasoningDelta(text):
                if not isinstance(self._open, ThoughtsItem):
                    yield from self._begin(ThoughtsItem(self._place))
                if isinstance(self._open, ThoughtsItem):
                    yield self._open.more(text)
            case ToolCallDelta(_, id, name, arguments):
                if id is not None:
                    yield from self._begin(CallItem(self._place, id, name or ""))
                if arguments and isinstance(self._open, CallItem):
                    yield self._open.more(arguments)
            case BrokenCallDelta():
                if isinstance(self._open, CallItem):
                    self._open.broken = True

    def _text(self, text: str) -> Iterator[ResponseStreamEvent]:
        item = self._open
        if not isinstance(item, TextItem):
            item = TextItem(self._place)
            yield from self._begin(item)
        if text or self._logprobs:
            yield item.more(text, self._logprobs)
            self._logprobs = []

    @property
    def _place(self) -> Place:
        """Of an item behind the one that is open."""
        return Place(len(self._output) + (self._open is not None), self._numbers)

    def _begin(self, item: OutputItem) -> Iterator[ResponseStreamEvent]:
        yield from self._close("completed")
        self._open = item
        yield from item.opening()

    def _close(self, status: Status) -> Iterator[ResponseStreamEvent]:
        if self._open is not None:
            yield from self._open.closing(status)
            self._output.append(self._open.item(status))
            self._open = None

    def _end(self, result: Result) -> Iterator[ResponseStreamEvent]:
        if isinstance(self._open, TextItem) or self._open is None:
            yield from self._text("")
        status: Literal["completed", "incomplete"] = "incomplete" if result.finish_reason == "length" else "completed"
        yield from self._close(status)
        response = self._frame.ended(status, self._output, result)
        if status == "incomplete":
            yield ResponseIncompleteEvent(
                type="response.incomplete", sequence_number=next(self._numbers), response=response
            )
        else:
            yield ResponseCompletedEvent(
                type="response.completed", sequence_number=next(self._numbers), response=response
            )


def _logprob(found: TokenLogprobs, spell: Spell) -> Logprob:
    return Logprob.model_validate(token_logprob(found, spell).to_dict())


def _wire(event: ResponseStreamEvent) -> Wire:
    wire: Wire = event.to_dict(mode="json", exclude_unset=True)
    if response := wire.get("response"):
        for name in ("created_at", "completed_at"):  # seconds, which clients of other languages want whole
            if response[name] is not None:
                response[name] = int(response[name])
    return wire
