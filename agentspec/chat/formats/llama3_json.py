"""Llama 3's JSON calls: the answer is the object, {"name": ..., "parameters": {...}}, perhaps after a control token."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from agentspec.chat.calls import Calls, NoCall, Written, read_json_call
from agentspec.chat.formats.base import Rule, ToolFormat
from agentspec.chat.tape import Steps, Tape
from agentspec.grammar.schema import SEPARATORS
from agentspec.grammar.tools import Tool, call_rules
from agentspec.grammar.until import Opening
from agentspec.segments import CallMarks

TAG = "<|python_tag|>"
_ITEM, _KEY = SEPARATORS
_OPEN = f'{{"name"{_KEY}"'
_BEGINNING = re.compile(r'\s*(?:\{\s*(?:"([^"]*)"|[^\s"])|[^\s{])')


def _rules(tools: Sequence[Tool], rule: Rule) -> list[str]:
    return [f"tag: {rule(TAG)}", *call_rules("object", tools, lambda tool: json.dumps(_head(tool)), '"}"')]


def _head(tool: Tool) -> str:
    return f'{_OPEN}{tool.name}"{_ITEM}"parameters"{_KEY}'


def _heads(tools: Sequence[Tool]) -> tuple[str, ...]:
    return (TAG, *map(_head, tools))


def _write(calls: Sequence[Written]) -> str:
    return "; ".join(f'{{"name"{_KEY}{json.dumps(call.name)}{_ITEM}"parameters"{_KEY}{call.json}}}' for call in calls)


def _read(tape: Tape, calls: Calls) -> Steps[None]:
    """One call, and more as long as a semicolon follows; an object that names no tool is text."""
    yield from tape.starts(TAG)
    while True:
        beginning = yield from tape.match(_BEGINNING, take=False)
        if beginning is None and tape.cut:
            tape.take(len(tape.text))
            return
        if beginning is None or beginning.group(1) not in ("name", "type", "function"):
            raise NoCall
        yield from read_json_call(tape, calls, known_only=True)
        yield from tape.space()
        if not (yield from tape.starts(";")):
            return


LLAMA3_JSON = ToolFormat(
    name="llama3_json",
    openings=(Opening(TAG), Opening(_OPEN, at_start=True), Opening("{", at_start=True, enforced=False)),
    marks=CallMarks(opens=(TAG, "{")),
    syntax=f"nothing but a JSON object with its name and arguments:\n"
    f'{_OPEN}<function name>"{_ITEM}"parameters"{_KEY}<arguments as a JSON object>}}',
    grammar="llama3_json.lark",
    rules=_rules,
    write=_write,
    read=_read,
    heads=_heads,
)
