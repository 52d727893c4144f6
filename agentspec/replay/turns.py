"""What a replay answers: recorded turns, and the records that hold none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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
        line: Of the conversation's first record there, from 1: its line, or its place in a file that is one document.
        called: Whether the recorded message called tools.
        category: What kind of answer it is.
        schema: JSON Schema that the answer was held to, if it was.
        repeat: Whether an earlier line holds the same task; see `mark_repeats`.
        number: Which of its conversation's turns, from 1.
        answer: The recorded message, in OpenAI's form; None: a task of which no answer was recorded.
        approximate: Whether the answer is not to the character what the model wrote, such as a call whose arguments
            were recorded as an object.
        tokens: Ids of the recorded answer, where they were recorded; the end token is among them if it was.
        prompt: Ids that the model read, where they were recorded.
        written: All that the model wrote, in its own markup, as far as a stop text; None: not recorded.
        model: Who wrote the answer, as it was recorded; "": unknown.
        options: What was asked beside tools and schema, as far as the record tells; names of `local.ask.Options`.
        params: How the answer was sampled, likewise; names of `SamplingParams`.
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
    number: int = 1
    answer: Mapping[str, Any] | None = None
    approximate: bool = False
    tokens: tuple[int, ...] = ()
    prompt: tuple[int, ...] = ()
    written: str | None = None
    model: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The same for the same turn, wherever it is read from: of what was asked and answered, without its text."""
        asked = [self.options, self.params] if self.options or self.params else []
        held = [] if self.schema is None else [self.schema]
        text = json.dumps([self.messages, self.tools, self.answer, *asked, *held], sort_keys=True, default=str)
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record, or one turn of it, that can't be used.

    Attributes:
        line: As of a turn; 0 stands for the whole file.
        reason: Why; it holds nothing of the recorded text.
        index: Of the turn's message; None where it is the whole record.
    """

    file: str
    line: int
    reason: str
    index: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"

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
