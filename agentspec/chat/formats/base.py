"""What one family's way of writing tool calls consists of. A new one is a file with one such value, and a grammar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentspec.chat.calls import Calls, Written, new_call_id
from agentspec.chat.tape import Steps, Tape
from agentspec.grammar.reasoned import Reasoning
from agentspec.grammar.tools import Tool
from agentspec.grammar.until import Opening
from agentspec.segments import CallMarks

Rule = Callable[[str], str]
"""Gives a marker's text as terms of a Lark rule: control tokens where there are any of that name, text otherwise."""


def _none(tools: Sequence[Tool]) -> tuple[Opening, ...]:
    return ()


THINK = Reasoning("<think>", "</think>")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFormat:
    """How calls are shown, enforced and read: one value for all of it. Control tokens are written by their names.

    Attributes:
        name: By which it is chosen.
        openings: The texts that begin a call, or a list of calls.
        tool_openings: More of them, for texts that begin a call only with a tool's name in them.
        heads: Texts that tell a call, as the grammar wants it, from JSON; None: the enforced openings do.
        marks: The same for the reader of segments, with what ends a call.
        syntax: How to write a call, told to models whose template does not; follows "To call a function, write ".
        grammar: Name of the file of grammar rules that don't depend on the tools.
        rules: The rules that do, from the tools that may be called, at least one. With the file's they must define
            `call`, an answer that is just one call, and `calls`, one or more; both begin with the opening. They need
            not care what comes before. Behind the last call they leave nothing but the end, under every tool choice:
            each of these families ends its turn there, and its templates put what is said before the calls. What
            stands between two calls may also come before the end, so that a model which writes it out of habit has
            not promised another call. An argument's value is a rule by `grammar.schema.json_rule` where it is JSON, of
            the tool's `closed` parameters.
        write: The text of calls, at least one, as the grammar wants them and the reader reads them.
        read: Reads one call, or one list of calls, from the opening on, and takes what closes it; see
            `chat.calls.Calls` and `chat.tape.Tape`. Raises BrokenCall and NoCall.
        reasoning: The markers around thoughts. They count for models whose template or vocabulary has them.
        frames: One of these comes before an answer that is no call, where the family writes them; `hidden` has them.
        hidden: Texts that are neither shown nor mean anything, such as the frames of channels.
        within: Other texts, inside calls, that may be control tokens or hold some.
        hints: Texts that stand, all of them, in the family's templates that leave out tools or calls.
        shown: Whether a prompt that a chat template made of a conversation with one call shows that call this way,
            told from the prompt's text and the call; None: it must have what `write` gives, white space aside.
        prepare: Brings turns into the shape that the family's templates insist on, such as ids of nine characters.
        described: Whether tools are described in the system turn even where the template would show them.
        new_id: Gives a call its id.
    """

    name: str
    openings: tuple[Opening, ...]
    marks: CallMarks
    syntax: str
    grammar: str
    rules: Callable[[Sequence[Tool], Rule], Sequence[str]]
    write: Callable[[Sequence[Written]], str]
    read: Callable[[Tape, Calls], Steps[None]]
    reasoning: Reasoning | None = THINK
    frames: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    shown: Callable[[str, Written], bool] | None = None
    prepare: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = field(default=list)
    tool_openings: Callable[[Sequence[Tool]], tuple[Opening, ...]] = _none
    heads: Callable[[Sequence[Tool]], tuple[str, ...]] | None = None
    described: bool = False
    new_id: Callable[[], str] = new_call_id

    @property
    def markers(self) -> tuple[str, ...]:
        """All texts that may hold control tokens which have to be seen."""
        thoughts = (self.reasoning.open, self.reasoning.close, *self.reasoning.between) if self.reasoning else ()
        calls = (*(opening.text for opening in self.openings), *self.marks.closes, *self.within)
        return (*calls, *self.hidden, *thoughts)

    def begins(self, tools: Sequence[Tool]) -> tuple[str, ...]:
        """The texts by which calls are told from a text that is held to something else."""
        if self.heads is not None:
            return self.heads(tools)
        return tuple(opening.text for opening in (*self.openings, *self.tool_openings(tools)) if opening.enforced)

    def shows(self, prompt: str, call: Written) -> bool:
        """Whether a template's prompt shows the call in this format."""
        if self.shown is not None:
            return self.shown(prompt, call)
        return "".join(self.write([call]).split()) in "".join(prompt.split())
