"""Mistral's two ways behind [TOOL_CALLS]: a JSON list of calls, and newer, for each call its name, [ARGS] and JSON."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from agentspec.chat.calls import BrokenCall, Calls, Written, read_arguments, read_json_list
from agentspec.chat.formats.base import Rule, ToolFormat
from agentspec.chat.tape import Steps, Tape
from agentspec.grammar.reasoned import Reasoning
from agentspec.grammar.schema import SEPARATORS
from agentspec.grammar.tools import Tool, call_rules
from agentspec.grammar.until import Opening
from agentspec.segments import CallMarks

OPEN = "[TOOL_CALLS]"
ID = "[CALL_ID]"
ARGUMENTS = "[ARGS]"
THINK = Reasoning("[THINK]", "[/THINK]")
_ITEM, _KEY = SEPARATORS
_NINE = re.compile("[A-Za-z0-9]{9}")
_HEAD = re.compile(r"\s*([^\s\[{]+)\s*(?:\[CALL_ID\]\s*\w+\s*)?(?:\[ARGS\]\s*)?(?=\{)")


def _list_rules(tools: Sequence[Tool], rule: Rule) -> list[str]:
    return [f"open: {rule(OPEN)}", *call_rules("object", tools, lambda tool: json.dumps(_object(tool.name)), 'id? "}"')]


def _object(name: str) -> str:
    return f'{{"name"{_KEY}{json.dumps(name)}{_ITEM}"arguments"{_KEY}'


def _named_rules(tools: Sequence[Tool], rule: Rule) -> list[str]:
    functions = call_rules("function", tools, lambda tool: f"{json.dumps(tool.name)} id? arguments")
    markers = [f"open: {rule(OPEN)}", f"id_marker: {rule(ID)}", f"arguments: {rule(ARGUMENTS)}"]
    return [*markers, *functions]


def _write_list(calls: Sequence[Written]) -> str:
    return f"{OPEN}[{_ITEM.join(f'{_object(call.name)}{call.json}}}' for call in calls)}]"


def _write_named(calls: Sequence[Written]) -> str:
    return "".join(f"{OPEN}{call.name}{ARGUMENTS}{call.json}" for call in calls)


def _read(tape: Tape, calls: Calls) -> Steps[None]:
    """A list of calls, or one call, however the model was thought to write them."""
    tape.take(len(OPEN))
    yield from tape.space()
    if (yield from tape.starts("[")):
        yield from read_json_list(tape, calls)
        return
    head = yield from tape.match(_HEAD, OPEN)
    if head is None:
        raise BrokenCall
    yield from read_arguments(tape, calls, head.group(1))


def _list_shown(prompt: str, call: Written) -> bool:
    """An id may follow the arguments."""
    return "".join(f"{OPEN}[{_object(call.name)}{call.json}".split()) in "".join(prompt.split())


def _named_shown(prompt: str, call: Written) -> bool:
    """An id may follow the name."""
    name, arguments = (re.escape("".join(text.split())) for text in (OPEN + call.name, ARGUMENTS + call.json))
    return re.search(rf"{name}(\[CALL_ID\]\w*)?{arguments}", "".join(prompt.split())) is not None


def _with_short_ids(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The templates refuse ids that are not nine letters and digits."""
    return [
        {
            **turn,
            **({"tool_call_id": _short(turn.get("tool_call_id"))} if turn["role"] == "tool" else {}),
            **({"tool_calls": [_with_short_id(call) for call in turn["tool_calls"]]} if turn.get("tool_calls") else {}),
        }
        for turn in turns
    ]


def _with_short_id(call: dict[str, Any]) -> dict[str, Any]:
    return {**call, "id": _short(call.get("id"))}


def _short(call_id: object) -> str:
    """The same for the same id, so that a result is still that of its call."""
    text = str(call_id)
    return text if _NINE.fullmatch(text) else hashlib.sha256(text.encode()).hexdigest()[:9]


MISTRAL = ToolFormat(
    name="mistral",
    openings=(Opening(OPEN),),
    marks=CallMarks(opens=(OPEN,)),
    syntax=f"{OPEN} and a JSON list of calls, each with its name and arguments:\n"
    f'{OPEN}[{{"name": <function name>, "arguments": <arguments as a JSON object>}}]',
    grammar="mistral.lark",
    rules=_list_rules,
    write=_write_list,
    read=_read,
    reasoning=THINK,
    shown=_list_shown,
    prepare=_with_short_ids,
)
MISTRAL_NAMED = ToolFormat(
    name="mistral_named",
    openings=(Opening(OPEN),),
    marks=CallMarks(opens=(OPEN,), name_after=(OPEN,)),
    syntax=f"{OPEN}, its name, {ARGUMENTS} and its arguments as a JSON object, for each call:\n"
    f"{OPEN}name{ARGUMENTS}{{...}}",
    grammar="mistral_named.lark",
    rules=_named_rules,
    write=_write_named,
    read=_read,
    reasoning=THINK,
    within=(ID, ARGUMENTS),
    shown=_named_shown,
    prepare=_with_short_ids,
)
