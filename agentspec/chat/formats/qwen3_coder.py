"""Qwen3-Coder's XML: a tag for the function, one for each parameter, strings as they are and other values as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agentspec.chat.calls import BrokenCall, Calls, Written
from agentspec.chat.formats.base import Rule, ToolFormat
from agentspec.chat.raw_values import VALUE_END, parameter_rules, read_value, types_of
from agentspec.chat.tape import Steps, Tape
from agentspec.grammar.tools import Tool, closed
from agentspec.grammar.until import Opening
from agentspec.segments import CallMarks

OPEN = "<tool_call>"
CLOSE = "</tool_call>"
_FUNCTION = re.compile(r"\s*<function=([^>\n]+)>")
_PARAMETER = re.compile(r"\s*(?:<parameter=([^>\n]+)>\n|</function>)")


def _rules(tools: Sequence[Tool], rule: Rule) -> list[str]:
    return [
        f"open: {rule(OPEN)}",
        f"close: {rule(CLOSE)}",
        "function: " + " | ".join(f"tool_{index}" for index in range(len(tools))),
        *(line for index, tool in enumerate(tools) for line in _tool(index, tool)),
    ]


def _tool(index: int, tool: Tool) -> list[str]:
    body, rules = parameter_rules(f"tool_{index}", tool)
    return [f'tool_{index}: {json.dumps(f"<function={tool.name}>")} "\\n" {body} "</function>"', *rules]


def _write(calls: Sequence[Written]) -> str:
    return "\n".join(_call(call) for call in calls)


def _call(call: Written) -> str:
    arguments = call.arguments if isinstance(call.arguments, Mapping) else {"arguments": call.arguments}
    values = "".join(f"<parameter={key}>\n{_value(value)}{VALUE_END}" for key, value in arguments.items())
    return f"{OPEN}\n<function={call.name}>\n{values}</function>\n{CLOSE}"


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read(tape: Tape, calls: Calls) -> Steps[None]:
    yield from tape.starts(OPEN)
    function = yield from tape.match(_FUNCTION, CLOSE)
    if function is None:
        raise BrokenCall
    tool = calls.tools.get(name := function.group(1).strip())
    schema = closed(tool.parameters) if tool is not None else {}
    yield calls.begin(name)
    before = "{"
    while True:
        found = yield from tape.match(_PARAMETER, CLOSE)
        if found is None:
            raise BrokenCall
        if found.group(1) is None:
            break
        yield calls.arguments(f"{before}{json.dumps(found.group(1), ensure_ascii=False)}: ")
        yield from read_value(tape, calls, types_of(_property(schema, found.group(1)), schema))
        before = ", "
    yield calls.arguments("}" if before == ", " else "{}")
    calls.end()
    yield from tape.space()
    yield from tape.starts(CLOSE)


def _property(schema: Mapping[str, Any], name: str) -> object:
    return schema.get("properties", {}).get(name, schema.get("additionalProperties", True))


QWEN3_CODER = ToolFormat(
    name="qwen3_coder",
    # The model sometimes leaves the outer tag out.
    openings=(Opening(OPEN), Opening("<function=", enforced=False)),
    marks=CallMarks(
        opens=(OPEN,), closes=(CLOSE,), name_after=("<function=",), raw_value=("<parameter=", ">\n", VALUE_END)
    ),
    syntax=f"it in this form, strings as they are and other values as JSON:\n{OPEN}\n<function=name>\n"
    f"<parameter=name of an argument>\nits value{VALUE_END}</function>\n{CLOSE}",
    grammar="qwen3_coder.lark",
    rules=_rules,
    write=_write,
    read=_read,
)
