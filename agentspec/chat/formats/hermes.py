"""A JSON object in <tool_call> tags, as Hermes, Qwen 2.5 and Qwen 3 write it, and others when told; or without tags."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentspec.chat.calls import Calls, NoCall, Written, read_json_call
from agentspec.chat.formats.base import Rule, ToolFormat
from agentspec.chat.tape import Steps, Tape
from agentspec.grammar.schema import SEPARATORS
from agentspec.grammar.tools import Tool, call_rules
from agentspec.grammar.until import Opening
from agentspec.segments import CallMarks

OPEN = "<tool_call>"
CLOSE = "</tool_call>"
_FENCES = ("```json\n", "```\n")


def _rules(tools: Sequence[Tool], rule: Rule) -> list[str]:
    item, key = SEPARATORS
    objects = call_rules(
        "object", tools, lambda tool: json.dumps(f'{{"name"{key}"{tool.name}"{item}"arguments"{key}'), '"}"'
    )
    return [f"open: {rule(OPEN)}", f"close: {rule(CLOSE)}", *objects]


def _write(calls: Sequence[Written]) -> str:
    item, key = SEPARATORS
    return "\n".join(
        f'{OPEN}\n{{"name"{key}{json.dumps(call.name)}{item}"arguments"{key}{call.json}}}\n{CLOSE}' for call in calls
    )


def _read(tape: Tape, calls: Calls) -> Steps[None]:
    if (yield from tape.starts(OPEN)):
        yield from read_json_call(tape, calls, CLOSE)
        yield from tape.until(CLOSE)
    else:
        yield from _read_untagged(tape, calls)


def _read_untagged(tape: Tape, calls: Calls) -> Steps[None]:
    """A call in a fence or bare, which Qwen 2.5 Coder begins its answer with where nothing makes it write tags."""
    fenced = yield from tape.starts(*_FENCES)
    heads = tuple(f'{{"name":"{name}","{key}":{{' for name in calls.tools for key in ("arguments", "parameters"))
    while not (squeezed := "".join(tape.text.split())).startswith(heads):
        if not any(head.startswith(squeezed) for head in heads) or not (yield from tape.more()):
            raise NoCall
    yield from read_json_call(tape, calls)
    if fenced:
        yield from tape.space()
        yield from tape.starts("```")


def _shown(prompt: str, call: Written) -> bool:
    """Hermes 2 wrote the arguments first."""
    first = f'{OPEN}{{"arguments":{call.json},"name":"{call.name}"}}{CLOSE}'
    squeezed = "".join(prompt.split())
    return any("".join(text.split()) in squeezed for text in (first, _write([call])))


HERMES = ToolFormat(
    name="hermes",
    openings=(
        Opening(OPEN),
        *(Opening(f"{fence}{{", at_start=True, enforced=False) for fence in ("", *_FENCES)),
    ),
    marks=CallMarks(opens=(OPEN,), closes=(CLOSE,)),
    syntax=f"a JSON object with its name and arguments within {OPEN}{CLOSE}:\n{OPEN}\n"
    f'{{"name": <function name>, "arguments": <arguments as a JSON object>}}\n{CLOSE}',
    grammar="hermes.lark",
    rules=_rules,
    write=_write,
    read=_read,
    shown=_shown,
)
