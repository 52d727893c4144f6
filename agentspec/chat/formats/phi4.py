"""Phi-4-mini: a JSON list of calls between two control tokens; some templates show one object without the list."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentspec.chat.calls import Calls, Written, read_json_call, read_json_list
from agentspec.chat.formats.base import Rule, ToolFormat
from agentspec.chat.tape import Steps, Tape
from agentspec.grammar.schema import SEPARATORS
from agentspec.grammar.tools import Tool, call_rules
from agentspec.grammar.until import Opening
from agentspec.segments import CallMarks

OPEN = "<|tool_call|>"
CLOSE = "<|/tool_call|>"
_ITEM, _KEY = SEPARATORS


def _rules(tools: Sequence[Tool], rule: Rule) -> list[str]:
    objects = call_rules("object", tools, lambda tool: json.dumps(_head(tool.name)), '"}"')
    return [f"open: {rule(OPEN)}", f"close: {rule(CLOSE)}", *objects]


def _head(name: str) -> str:
    return f'{{"name"{_KEY}{json.dumps(name)}{_ITEM}"arguments"{_KEY}'


def _write(calls: Sequence[Written]) -> str:
    return f"{OPEN}[{_ITEM.join(f'{_head(call.name)}{call.json}}}' for call in calls)}]{CLOSE}"


def _read(tape: Tape, calls: Calls) -> Steps[None]:
    tape.take(len(OPEN))
    yield from tape.space()
    read = read_json_list if (yield from tape.starts("[")) else read_json_call
    yield from read(tape, calls)
    yield from tape.space()
    yield from tape.starts(CLOSE)


def _shown(prompt: str, call: Written) -> bool:
    """As a list or without."""
    squeezed, (listed, single) = (
        "".join(prompt.split()),
        (_write([call]), f"{OPEN}{_head(call.name)}{call.json}}}{CLOSE}"),
    )
    return any("".join(text.split()) in squeezed for text in (listed, single))


PHI4 = ToolFormat(
    name="phi4",
    openings=(Opening(OPEN),),
    marks=CallMarks(opens=(OPEN,), closes=(CLOSE,)),
    syntax=f"a JSON list of calls, each with its name and arguments, within {OPEN}{CLOSE}:\n"
    f'{OPEN}[{{"name": <function name>, "arguments": <arguments as a JSON object>}}]{CLOSE}',
    grammar="phi4.lark",
    rules=_rules,
    write=_write,
    read=_read,
    hints=("<|tool|>", "<|/tool|>"),
    shown=_shown,
)
