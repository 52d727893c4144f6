"""Functionary 3.1: a tag that names the function, around its arguments as JSON; Llama 3.1 knows it as custom tools."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from agentspec.chat.calls import BrokenCall, Calls, Written, read_arguments
from agentspec.chat.formats.base import Rule, ToolFormat
from agentspec.chat.tape import Steps, Tape
from agentspec.grammar.tools import Tool, call_rules
from agentspec.grammar.until import Opening
from agentspec.segments import CallMarks

OPEN = "<function="
CLOSE = "</function>"
_HEAD = re.compile(r"<function=([^>\s]+)>\s*(?=\{)")


def _rules(tools: Sequence[Tool], rule: Rule) -> list[str]:
    functions = call_rules("function", tools, lambda tool: json.dumps(f"{tool.name}>"))
    return [f"open: {rule(OPEN)}", f"close: {rule(CLOSE)}", *functions]


def _write(calls: Sequence[Written]) -> str:
    return "".join(f"{OPEN}{call.name}>{call.json}{CLOSE}" for call in calls)


def _read(tape: Tape, calls: Calls) -> Steps[None]:
    head = yield from tape.match(_HEAD, CLOSE)
    if head is None:
        raise BrokenCall
    yield from read_arguments(tape, calls, head.group(1))
    yield from tape.space()
    yield from tape.starts(CLOSE)


FUNCTIONARY = ToolFormat(
    name="functionary",
    openings=(Opening(OPEN),),
    marks=CallMarks(opens=(OPEN,), closes=(CLOSE,), name_after=(OPEN,)),
    syntax=f"its name in a tag and its arguments as a JSON object:\n{OPEN}name>{{...}}{CLOSE}",
    grammar="functionary.lark",
    rules=_rules,
    write=_write,
    read=_read,
)
