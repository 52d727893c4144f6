"""What a replay answers: recorded turns, and the lines that hold none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentspec.replay.categories import Category


@dataclass(frozen=True, slots=True)
class Turn:
    """A message that a model wrote, or is asked to write, seen from before it.

    Attributes:
        trace_id: Of the conversation.
        index: Of the message in it, from 0.
        messages: What came before, in OpenAI's form, at least one.
        tools: What the model could call, in OpenAI's form.
        file: Where it was read from.
        line: Its line there, from 1.
        called: Whether the recorded message called tools.
        category: What kind of answer it is.
        schema: JSON Schema that the answer was held to, if it was.
        repeat: Whether an earlier line holds the same task; see `mark_repeats`.
    """

    trace_id: str
    index: int
    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...]
    file: str
    line: int
    called: bool
    category: Category = Category.PROSE
    schema: Mapping[str, Any] | None = None
    repeat: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line, or one turn of it, that can't be used.

    Attributes:
        line: From 1; 0 stands for the whole file.
        reason: Why; it holds nothing of the recorded text.
        index: Of the turn's message; None where it is the whole line.
    """

    file: str
    line: int
    reason: str
    index: int | None = None

    @property
    def wire(self) -> dict[str, Any]:
        """As reports show it."""
        where: dict[str, Any] = {"file": self.file, "line": self.line}
        return where | ({} if self.index is None else {"index": self.index}) | {"reason": self.reason}


@dataclass(frozen=True, slots=True)
class Recording:
    """All turns of some files, in order, and what could not be read."""

    turns: tuple[Turn, ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a trace file, for a reader of its shape.

    Attributes:
        row: The JSON object on it.
        file: Where it was read from.
        number: From 1.
    """

    row: Mapping[str, Any]
    file: str
    number: int

    def turn(
        self,
        messages: tuple[Mapping[str, Any], ...],
        category: Category,
        *,
        tools: tuple[Mapping[str, Any], ...] = (),
        called: bool = False,
    ) -> Turn:
        """The turn that answers these messages, of a row whose name is its `id`."""
        name = self.row.get("id")
        trace_id = name if isinstance(name, str) else f"line {self.number}"
        return Turn(trace_id, len(messages), messages, tools, self.file, self.number, called, category)
