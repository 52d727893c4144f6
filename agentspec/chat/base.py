"""What an answer is made of, as it is written and as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More of the thoughts before the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of a tool call.

    Attributes:
        index: Which call of this answer, from 0.
        id: In the first delta of a call only, otherwise None.
        name: The whole name, in the first delta only, otherwise None.
        arguments: The next piece of the arguments' JSON text; empty in the first delta.
    """

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class BrokenCallDelta:
    """A call that ended, or was cut off, before it made sense.

    Attributes:
        index: The call's index if deltas of it were given out, otherwise None.
        text: What was written, without the markers.
    """

    index: int | None
    text: str


Delta = TextDelta | ReasoningDelta | ToolCallDelta | BrokenCallDelta


class MessageParser(Protocol):
    """Takes an answer apart while it is written. What comes out in all does not depend on how the text was cut."""

    def feed(self, text: str) -> list[Delta]:
        """What is known after more of the text."""

    def finish(self, *, cut: bool = False) -> list[Delta]:
        """What is left at the end, such as text that looked like the beginning of a marker.

        Args:
            cut: Whether a limit ended the answer: behind a call, the beginning of a marker is dropped then.
        """


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call of an answer.

    Attributes:
        arguments: JSON text, as the model wrote it.
        complete: Whether it can be run: its JSON is whole and the call was not cut off.
    """

    id: str
    name: str
    arguments: str
    complete: bool = True

    @property
    def wire(self) -> dict[str, Any]:
        """In OpenAI's form."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


@dataclass(frozen=True, slots=True)
class Message:
    """An assistant's whole answer.

    Attributes:
        tool_calls: Calls that can be run.
        broken_calls: Calls that can't: cut off by the length limit, or malformed.
        reasoning: The thoughts before the answer.
    """

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    broken_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""

    @property
    def wire(self) -> dict[str, Any]:
        """In OpenAI's form, with keys of their own for broken calls and reasoning.

        `content` is None next to tool calls without text.
        """
        wire: dict[str, Any] = {"role": "assistant", "content": self.content or (None if self.tool_calls else "")}
        if self.reasoning:
            wire["reasoning_content"] = self.reasoning
        if self.tool_calls:
            wire["tool_calls"] = [call.wire for call in self.tool_calls]
        if self.broken_calls:
            wire["invalid_tool_calls"] = [call.wire for call in self.broken_calls]
        return wire


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    arguments: str = ""
    complete: bool = True


@dataclass(slots=True)
class MessageBuilder:
    """Puts deltas together again."""

    _text: list[str] = field(default_factory=list)
    _reasoning: list[str] = field(default_factory=list)
    _calls: list[_Call] = field(default_factory=list)
    _unreadable: list[ToolCall] = field(default_factory=list)

    def add(self, deltas: Iterable[Delta]) -> None:
        """Take more deltas, in order."""
        for delta in deltas:
            match delta:
                case TextDelta(text):
                    self._text.append(text)
                case ReasoningDelta(text):
                    self._reasoning.append(text)
                case ToolCallDelta(index, id, name, arguments):
                    if index == len(self._calls):
                        self._calls.append(_Call(id or "", name or ""))
                    self._calls[index].arguments += arguments
                case BrokenCallDelta(index, text):
                    if index is None:
                        self._unreadable.append(ToolCall("", "", text, complete=False))
                    else:
                        self._calls[index].complete = False

    @property
    def text(self) -> str:
        """The answer's text so far."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """Its thoughts so far."""
        return "".join(self._reasoning)

    @property
    def calls(self) -> list[ToolCall]:
        """Its calls so far, in order, those that can't be run too; what can't be read as a call is none."""
        return [ToolCall(call.id, call.name, call.arguments, call.complete) for call in self._calls]

    def message(self) -> Message:
        """The answer so far."""
        calls = self.calls
        return Message(
            self.text,
            tuple(call for call in calls if call.complete),
            (*(call for call in calls if not call.complete), *self._unreadable),
            self.reasoning,
        )
