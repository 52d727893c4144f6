"""The seam between a model's way of writing chats and everything that shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentspec.grammar.base import Guide
from agentspec.grammar.schema import Schema
from agentspec.grammar.tools import Tool, ToolChoice


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer's text."""

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


Delta = TextDelta | ToolCallDelta | BrokenCallDelta


class MessageParser(Protocol):
    """Takes an answer apart while it is written. What comes out in all does not depend on how the text was cut."""

    def feed(self, text: str) -> list[Delta]:
        """What is known after more of the text."""

    def finish(self) -> list[Delta]:
        """What is left at the end, such as text that looked like the beginning of a marker."""


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
    """

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    broken_calls: tuple[ToolCall, ...] = ()

    @property
    def wire(self) -> dict[str, Any]:
        """In OpenAI's form; `content` is None next to tool calls without text. Broken calls are under their own key."""
        wire: dict[str, Any] = {"role": "assistant", "content": self.content or (None if self.tool_calls else "")}
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
    _calls: list[_Call] = field(default_factory=list)
    _unreadable: list[ToolCall] = field(default_factory=list)

    def add(self, deltas: Iterable[Delta]) -> None:
        """Take more deltas, in order."""
        for delta in deltas:
            match delta:
                case TextDelta(text):
                    self._text.append(text)
                case ToolCallDelta(index, id, name, arguments):
                    if index == len(self._calls):
                        self._calls.append(_Call(id or "", name or ""))
                    self._calls[index].arguments += arguments
                case BrokenCallDelta(index, text):
                    if index is None:
                        self._unreadable.append(ToolCall("", "", text, complete=False))
                    else:
                        self._calls[index].complete = False

    def message(self) -> Message:
        """The answer so far."""
        calls = [ToolCall(call.id, call.name, call.arguments, call.complete) for call in self._calls]
        return Message(
            "".join(self._text),
            tuple(call for call in calls if call.complete),
            (*(call for call in calls if not call.complete), *self._unreadable),
        )


class ChatFormat(Protocol):
    """One family's way of writing messages, tools and calls: rendering, guide and parser fit each other."""

    @property
    def markers(self) -> Sequence[str]:
        """Texts that the parser must see even where they are control tokens."""

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Tool] = (), tool_choice: ToolChoice = "auto"
    ) -> list[int]:
        """The prompt, up to where the assistant's answer begins.

        Raises:
            PromptError: A message can't be used; the text names `messages[i]`.
        """

    def guide(
        self,
        tools: Sequence[Tool] = (),
        tool_choice: ToolChoice = "auto",
        *,
        schema: Schema | None = None,
        parallel: bool = True,
    ) -> Guide:
        """What the answer is held to."""

    def parser(self, tools: Sequence[Tool] = (), tool_choice: ToolChoice = "auto") -> MessageParser:
        """A parser for one answer."""
