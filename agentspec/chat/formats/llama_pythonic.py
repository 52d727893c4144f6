"""Llama 3.2's and 4's calls in Python: the answer is a list of them, `[name(key='value')]`, perhaps between tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentspec.chat.calls import BrokenCall, Calls, NoCall, Written
from agentspec.chat.formats.base import Rule, ToolFormat
from agentspec.chat.python_calls import read_python_call, write_python_call
from agentspec.chat.python_rules import python_rules
from agentspec.chat.tape import Steps, Tape
from agentspec.grammar.tools import Tool
from agentspec.grammar.until import Opening
from agentspec.segments import CallMarks

BEGIN = "<|python_start|>"
END = "<|python_end|>"
_BRACKET = re.compile(r"\s*(\[)")
_NEXT = re.compile(r"\s*([,\]]|[^\s,\]])")


def _rules(tools: Sequence[Tool], rule: Rule) -> list[str]:
    return [f"begin: {rule(BEGIN)}", f"end: {rule(END)}", *python_rules(tools)]


def _tool_openings(tools: Sequence[Tool]) -> tuple[Opening, ...]:
    """A list of anything else is text."""
    return tuple(Opening(f"[{tool.name}(", at_start=True) for tool in tools)


def _write(calls: Sequence[Written]) -> str:
    return f"[{', '.join(map(write_python_call, calls))}]"


def _read(tape: Tape, calls: Calls) -> Steps[None]:
    tagged = yield from tape.starts(BEGIN)
    yield from tape.space()
    if not (yield from tape.starts("[")):
        raise NoCall
    known_only = not tagged
    while True:
        yield from read_python_call(tape, calls, known_only=known_only)
        known_only = False
        found = yield from tape.match(_NEXT)
        if found is None or found.group(1) not in ",]":
            raise BrokenCall
        if found.group(1) == "]":
            break
    yield from tape.space()
    yield from tape.starts(END)


def _shown(prompt: str, call: Written) -> bool:
    """In either quotation mark."""
    return "".join(_write([call]).split()) in "".join(prompt.split()).replace('"', "'")


LLAMA_PYTHONIC = ToolFormat(
    name="llama_pythonic",
    openings=(Opening(BEGIN), Opening("[", at_start=True, enforced=False)),
    tool_openings=_tool_openings,
    marks=CallMarks(opens=(f"{BEGIN}[", "["), closes=("]",), python=True),
    hidden=(END,),
    syntax="nothing but a list of calls in Python, with all arguments by name:\n"
    "[<function name>(<argument name>=<value>, <argument name>=<value>), <function name>()]",
    grammar="llama_pythonic.lark",
    rules=_rules,
    write=_write,
    read=_read,
    shown=_shown,
)
