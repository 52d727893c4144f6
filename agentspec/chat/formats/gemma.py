"""Gemma's fenced calls: Python in a fence of `tool_code`, one call a line. A fence of JSON may hold a call too."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentspec.chat.calls import Calls, NoCall, Written, read_json_call
from agentspec.chat.formats.base import Rule, ToolFormat
from agentspec.chat.python_calls import read_python_call, write_python_call
from agentspec.chat.python_rules import python_rules
from agentspec.chat.tape import Steps, Tape
from agentspec.grammar.tools import Tool
from agentspec.grammar.until import Opening
from agentspec.segments import CallMarks

OPEN = "```tool_code\n"
CLOSE = "\n```"
_JSON = "```json\n"
_NAMED = re.compile(r'\s*(?:\{\s*(?:"([^"]*)"|[^\s"])|[^\s{])')


def _rules(tools: Sequence[Tool], rule: Rule) -> list[str]:
    return [f"open: {rule(OPEN)}", f"close: {rule(CLOSE)}", *python_rules(tools)]


def _write(calls: Sequence[Written]) -> str:
    return OPEN + "\n".join(map(write_python_call, calls)) + CLOSE


def _read(tape: Tape, calls: Calls) -> Steps[None]:
    if (yield from tape.starts(OPEN, _JSON)) == _JSON:
        yield from _read_json(tape, calls)
        return
    while True:
        yield from read_python_call(tape, calls)
        yield from tape.space()
        if (yield from tape.starts("```")):
            return


def _read_json(tape: Tape, calls: Calls) -> Steps[None]:
    """A fence of JSON that is no call of a tool is text."""
    begins = yield from tape.match(_NAMED, take=False)
    if begins is None or begins.group(1) != "name":
        raise NoCall
    yield from read_json_call(tape, calls, CLOSE, known_only=True)
    yield from tape.until(CLOSE)


def _shown(prompt: str, call: Written) -> bool:
    """In either quotation mark."""
    return "".join(_write([call]).split()) in "".join(prompt.split()).replace('"', "'")


GEMMA = ToolFormat(
    name="gemma",
    openings=(Opening(OPEN), Opening(_JSON, enforced=False)),
    marks=CallMarks(opens=(OPEN,), closes=(CLOSE,), python=True),
    syntax=f"it in Python, with all arguments by name, in a fence of its own:\n"
    f"{OPEN}<function name>(<argument name>=<value>, <argument name>=<value>){CLOSE}",
    grammar="gemma.lark",
    rules=_rules,
    write=_write,
    read=_read,
    shown=_shown,
    hints=("<start_of_turn>",),
)
