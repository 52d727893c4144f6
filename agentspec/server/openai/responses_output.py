"""The items of a response's output while they are written, each with the events that tell of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from uuid import uuid4

from openai.types.responses import (
    ResponseContentPartAddedEvent,
    ResponseContentPartDoneEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionCallArgumentsDoneEvent,
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
    ResponseReasoningTextDeltaEvent,
    ResponseReasoningTextDoneEvent,
    ResponseStreamEvent,
    ResponseTextDeltaEvent,
    ResponseTextDoneEvent,
)
from openai.types.responses.response_content_part_added_event import PartReasoningText
from openai.types.responses.response_content_part_done_event import PartReasoningText as DonePart
from openai.types.responses.response_output_text import Logprob
from openai.types.responses.response_reasoning_item import Content
from openai.types.responses.response_text_delta_event import Logprob as DeltaLogprob
from openai.types.responses.response_text_done_event import Logprob as DoneLogprob

Status = Literal["in_progress", "completed", "incomplete"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an item stands, and the numbers of all events.

    Attributes:
        index: Of the item in the output.
        numbers: Of events, shared by all items.
    """

    index: int
    numbers: Iterator[int]

    def of_item(self, item_id: str) -> dict[str, Any]:
        """What the next event of an item says of where it belongs."""
        return {"sequence_number": next(self.numbers), "item_id": item_id, "output_index": self.index}

    def of_part(self, item_id: str) -> dict[str, Any]:
        """Likewise, of the one part that an item's content has."""
        return {**self.of_item(item_id), "content_index": 0}


class OutputItem(Protocol):
    """One that is being written."""

    def opening(self) -> Iterator[ResponseStreamEvent]:
        """That it begins."""

    def closing(self, status: Status) -> Iterator[ResponseStreamEvent]:
        """That it is over."""

    def item(self, status: Status) -> ResponseOutputItem:
        """As it stands."""


@dataclass(slots=True)
class TextItem:
    """A message with one text."""

    place: Place
    id: str = field(default_factory=lambda: f"msg_{uuid4().hex}")
    text: str = ""
    logprobs: list[Logprob] = field(default_factory=list)

    def opening(self) -> Iterator[ResponseStreamEvent]:
        """That it begins."""
        empty = ResponseOutputMessage(id=self.id, type="message", role="assistant", status="in_progress", content=[])
        yield _added(self.place, empty)
        yield ResponseContentPartAddedEvent(
            type="response.content_part.added",
            **self.place.of_part(self.id),
            part=ResponseOutputText(type="output_text", text="", annotations=[], logprobs=[]),
        )

    def more(self, text: str, logprobs: Sequence[Logprob] = ()) -> ResponseStreamEvent:
        """That it goes on."""
        self.text += text
        self.logprobs += logprobs
        return ResponseTextDeltaEvent(
            type="response.output_text.delta",
            **self.place.of_part(self.id),
            delta=text,
            logprobs=[DeltaLogprob.model_validate(each.to_dict()) for each in logprobs],
        )

    def closing(self, status: Status) -> Iterator[ResponseStreamEvent]:
        """That it is over."""
        yield ResponseTextDoneEvent(
            type="response.output_text.done",
            **self.place.of_part(self.id),
            text=self.text,
            logprobs=[DoneLogprob.model_validate(each.to_dict()) for each in self.logprobs],
        )
        yield ResponseContentPartDoneEvent(
            type="response.content_part.done",
            **self.place.of_part(self.id),
            part=self._part(),
        )
        yield _done(self.place, self.item(status))

    def item(self, status: Status) -> ResponseOutputMessage:
        """As it stands."""
        return ResponseOutputMessage(
            id=self.id, type="message", role="assistant", status=status, content=[self._part()]
        )

    def _part(self) -> ResponseOutputText:
        return ResponseOutputText(type="output_text", text=self.text, annotations=[], logprobs=self.logprobs)


@dataclass(slots=True)
class ThoughtsItem:
    """Reasoning, told in the open."""

    place: Place
    id: str = field(default_factory=lambda: f"rs_{uuid4().hex}")
    text: str = ""

    def opening(self) -> Iterator[ResponseStreamEvent]:
        """That it begins."""
        empty = ResponseReasoningItem(id=self.id, type="reasoning", summary=[], content=[], status="in_progress")
        yield _added(self.place, empty)
        yield ResponseContentPartAddedEvent(
            type="response.content_part.added",
            **self.place.of_part(self.id),
            part=PartReasoningText(type="reasoning_text", text=""),
        )

    def more(self, text: str) -> ResponseStreamEvent:
        """That it goes on."""
        self.text += text
        return ResponseReasoningTextDeltaEvent(
            type="response.reasoning_text.delta",
            **self.place.of_part(self.id),
            delta=text,
        )

    def closing(self, status: Status) -> Iterator[ResponseStreamEvent]:
        """That it is over."""
        yield ResponseReasoningTextDoneEvent(
            type="response.reasoning_text.done",
            **self.place.of_part(self.id),
            text=self.text,
        )
        yield ResponseContentPartDoneEvent(
            type="response.content_part.done",
            **self.place.of_part(self.id),
            part=DonePart(type="reasoning_text", text=self.text),
        )
        yield _done(self.place, self.item(status))

    def item(self, status: Status) -> ResponseReasoningItem:
        """As it stands."""
        content = [Content(type="reasoning_text", text=self.text)]
        return ResponseReasoningItem(id=self.id, type="reasoning", summary=[], content=content, status=status)


@dataclass(slots=True)
class CallItem:
    """A call of a function; one that ended before it made sense is incomplete, whatever comes behind it."""

    place: Place
    call_id: str
    name: str
    id: str = field(default_factory=lambda: f"fc_{uuid4().hex}")
    arguments: str = ""
    broken: bool = False

    def opening(self) -> Iterator[ResponseStreamEvent]:
        """That it begins."""
        yield _added(self.place, self.item("in_progress"))

    def more(self, arguments: str) -> ResponseStreamEvent:
        """That it goes on."""
        self.arguments += arguments
        return ResponseFunctionCallArgumentsDeltaEvent(
            type="response.function_call_arguments.delta",
            **self.place.of_item(self.id),
            delta=arguments,
        )

    def closing(self, status: Status) -> Iterator[ResponseStreamEvent]:
        """That it is over."""
        yield ResponseFunctionCallArgumentsDoneEvent(
            type="response.function_call_arguments.done",
            **self.place.of_item(self.id),
            arguments=self.arguments,
        )
        yield _done(self.place, self.item(status))

    def item(self, status: Status) -> ResponseFunctionToolCall:
        """As it stands."""
        return ResponseFunctionToolCall(
            id=self.id,
            type="function_call",
            call_id=self.call_id,
            name=self.name,
            arguments=self.arguments,
            status="incomplete" if self.broken else status,
        )


def _added(place: Place, item: ResponseOutputItem) -> ResponseStreamEvent:
    return ResponseOutputItemAddedEvent(
        type="response.output_item.added", sequence_number=next(place.numbers), output_index=place.index, item=item
    )


def _done(place: Place, item: ResponseOutputItem) -> ResponseStreamEvent:
    return ResponseOutputItemDoneEvent(
        type="response.output_item.done", sequence_number=next(place.numbers), output_index=place.index, item=item
    )
