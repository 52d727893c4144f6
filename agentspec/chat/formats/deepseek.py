"""DeepSeek's calls, each between two markers within two more: V3 and R1 fence the arguments, V3.1 does not."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial

from agentspec.chat.calls import BrokenCall, Calls, Written, read_arguments
from agentspec.chat.formats.base import Rule, ToolFormat
from agentspec.chat.tape import Steps, Tape
from agentspec.grammar.tools import Tool, call_rules
from agentspec.grammar.until import Opening
from agentspec.segments import CallMarks

OPEN = "<｜tool▁calls▁begin｜>"  # noqa: RUF001 (the model's own spelling)
CLOSE = "<｜tool▁calls▁end｜>"  # noqa: RUF001
CALL = "<｜tool▁call▁begin｜>"  # noqa: RUF001
NAME = "<｜tool▁sep｜>"  # noqa: RUF001
END = "<｜tool▁call▁end｜>"  # noqa: RUF001
_FENCED = (f"{CALL}function{NAME}", "\n```json\n", f"\n```{END}", "\n")
_BARE = (CALL, NAME, END, "")
"""What comes before a name, before arguments, behind them, and between two calls."""

_HEAD = re.compile(rf"\s*([^\s<]+){NAME}\s*(?:(?=\{{)|([^\s<`]+)\s*(?:```(?:json)?\s*)?(?=\{{))")


def _rules(parts: Sequence[str], tools: Sequence[Tool], rule: Rule) -> list[str]:
    before, middle, behind, between = parts
    return [
        f"open: {rule(OPEN + before)}",
        f"next: {rule(behind + between + before)}",
        f"close: {rule(behind + CLOSE)}",
        *call_rules("function", tools, lambda tool: f"{json.dumps(tool.name)} {rule(middle)}"),
    ]


def _write(parts: Sequence[str], calls: Sequence[Written]) -> str:
    before, middle, behind, between = parts
    return OPEN + between.join(f"{before}{call.name}{middle}{call.json}{behind}" for call in calls) + CLOSE


def _read(tape: Tape, calls: Calls) -> Steps[None]:
    """Calls of either kind, whichever the model was thought to write."""
    yield from tape.starts(OPEN)
    yield from tape.space()
    before = calls.count
    while (yield from tape.starts(CALL)):
        head = yield from tape.match(_HEAD, END, CLOSE)
        if head is None:
            raise BrokenCall
        yield from read_arguments(tape, calls, head.group(2) or head.group(1))
        for mark in ("```", END):
            yield from tape.space()
            yield from tape.starts(mark)
        yield from tape.space()
    if calls.count == before:
        raise BrokenCall
    yield from tape.starts(CLOSE)


def _format(name: str, parts: tuple[str, str, str, str], *, name_after: str, hints: tuple[str, ...]) -> ToolFormat:
    before, middle, behind, _ = parts
    return ToolFormat(
        name=name,
        # R1 and models that were taught by it sometimes leave the outer marker out.
        openings=(Opening(OPEN), Opening(CALL, enforced=False)),
        marks=CallMarks(opens=(OPEN,), closes=(CLOSE,), name_after=(name_after,)),
        syntax=f"it in this form, with one block from {CALL} to {END} for each call:\n"
        f"{OPEN}{before}name{middle}arguments as a JSON object{behind}{CLOSE}",
        grammar="deepseek.lark",
        rules=partial(_rules, parts),
        write=partial(_write, parts),
        read=_read,
        within=(NAME, END),
        hints=hints,
    )


DEEPSEEK = _format("deepseek", _FENCED, name_after=NAME, hints=(NAME, "```json"))
DEEPSEEK_V31 = _format("deepseek_v31", _BARE, name_after=CALL, hints=(NAME,))
