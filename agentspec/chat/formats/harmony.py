"""gpt-oss' channels: thoughts in `analysis`, calls and words before them in `commentary`, the answer in `final`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentspec.chat.calls import BrokenCall, Calls, Written
from agentspec.chat.formats.base import Rule, ToolFormat
from agentspec.chat.tape import Steps, Tape
from agentspec.grammar.reasoned import Reasoning
from agentspec.grammar.schema import json_rule
from agentspec.grammar.tools import Tool, closed
from agentspec.grammar.until import Opening
from agentspec.segments import CallMarks

CALL = "<|call|>"
END = "<|end|>"
_TURN = "<|start|>assistant"
_MESSAGE = "<|message|>"
_TO = "to=functions."
_BY_CHANNEL = f"<|channel|>commentary {_TO}"
_BY_ROLE = f"{_TURN} {_TO}"
_AS_THOUGHT = f"<|channel|>analysis {_TO}"
_JSON = "<|constrain|>json"
_NAME = re.compile(r"([A-Za-z0-9_.:-]+)(?=[^A-Za-z0-9_.:-])")


def _rules(tools: Sequence[Tool], rule: Rule) -> list[str]:
    heads = [json.dumps(tool.name) for tool in tools]
    each = " | ".join(f"tool_{index}" for index in range(len(tools)))
    by_role = " | ".join(f"role_{index}" for index in range(len(tools)))
    return [
        f'first: {rule(_BY_CHANNEL)} ({each}) | ({rule(_BY_ROLE)} | " "? "{_TO}") ({by_role})',
        f"next: {rule(_TURN)} {rule(_BY_CHANNEL)} ({each}) | {rule(_BY_ROLE)} ({by_role})",
        f'kind: (" "? {rule(_JSON)} | " json")? {rule(_MESSAGE)}',
        f"close: {rule(CALL)}",
        *(f"tool_{index}: {head} kind arguments_{index}" for index, head in enumerate(heads)),
        *(
            f"role_{index}: {head} {rule('<|channel|>commentary')} kind arguments_{index}"
            for index, head in enumerate(heads)
        ),
        *(f"arguments_{index}: {json_rule(closed(tool.parameters))}" for index, tool in enumerate(tools)),
    ]


def _write(calls: Sequence[Written]) -> str:
    return _TURN.join(f"{_BY_CHANNEL}{call.name} {_JSON}{_MESSAGE}{call.json}{CALL}" for call in calls)


def _read(tape: Tape, calls: Calls) -> Steps[None]:
    """The call's end is an end token, so that nothing need follow the arguments."""
    yield from tape.starts(_BY_CHANNEL, _BY_ROLE, _AS_THOUGHT, _TO)
    name = yield from tape.match(_NAME, CALL)
    if name is None:
        raise BrokenCall
    _, found = yield from tape.until(_MESSAGE, CALL, END)
    yield from tape.space()
    if found != _MESSAGE or not tape.text.startswith("{"):
        raise BrokenCall
    yield calls.begin(name.group(1))
    if not (yield from tape.json(calls.arguments)):
        raise BrokenCall
    calls.end()
    yield from tape.space()
    yield from tape.starts(CALL, END)


def _shown(prompt: str, call: Written) -> bool:
    """The recipient behind the role, as in the model's own template, or behind the channel."""
    heads = (f"{_TURN} {_TO}{call.name}<|channel|>commentary", f"{_TURN}{_BY_CHANNEL}{call.name}")
    pattern = "|".join(map(re.escape, heads))
    return re.search(rf"(?:{pattern})[^{{]*<\|message\|>\s*{re.escape(call.json)}", prompt) is not None


def _prepare(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One call a turn, its result behind it, and thoughts where the model's own template looks for them."""
    prepared: list[dict[str, Any]] = []
    waiting: list[dict[str, Any]] = []
    for turn in turns:
        if turn["role"] == "tool":
            call = _answered(waiting, turn)
            prepared += [call] if call else []
        else:
            prepared += waiting
            waiting = list(_apart(turn))
            if not turn.get("tool_calls"):
                prepared, waiting = prepared + waiting, []
        prepared += [turn] if turn["role"] == "tool" else []
    return prepared + waiting


def _answered(waiting: list[dict[str, Any]], result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Take out the call that a result is of: the one of its id, else the first."""
    ids = [turn["tool_calls"][0].get("id") for turn in waiting]
    wanted = result.get("tool_call_id")
    return waiting.pop(ids.index(wanted) if wanted in ids else 0) if waiting else None


def _apart(turn: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The turn, or one for each of its calls; what was said before them is with the first one's thoughts."""
    thoughts = turn.get("reasoning_content")
    calls = turn.get("tool_calls") or ()
    if not calls:
        yield {**turn, "thinking": thoughts} if thoughts else dict(turn)
    for index, call in enumerate(calls):
        said = "" if index else "\n\n".join(filter(None, (thoughts, turn["content"])))
        yield {**turn, "content": "", "tool_calls": [call], **({"thinking": said} if said else {})}


_FINAL = (f"<|channel|>final{_MESSAGE}", f"<|channel|>final {_JSON}{_MESSAGE}")

HARMONY = ToolFormat(
    name="harmony",
    openings=(
        Opening(_BY_CHANNEL),
        Opening(_BY_ROLE),
        Opening(_TO, at_start=True, certain=True),
        Opening(_AS_THOUGHT, enforced=False),
    ),
    marks=CallMarks(opens=(_TO,), closes=(CALL, END), name_after=(_TO,)),
    syntax=f"a message to it in the commentary channel, its arguments as a JSON object:\n"
    f"{_BY_CHANNEL}<function name> {_JSON}{_MESSAGE}<arguments>{CALL}",
    grammar="harmony.lark",
    rules=_rules,
    write=_write,
    read=_read,
    reasoning=Reasoning("<|channel|>analysis<|message|>", END, between=(_TURN,), anywhere=True),
    frames=_FINAL,
    hidden=(
        *_FINAL,
        f"<|channel|>commentary{_MESSAGE}",
        "<|channel|>",
        _MESSAGE,
        _JSON,
        _TURN,
        END,
        CALL,
        "<|return|>",
    ),
    shown=_shown,
    prepare=_prepare,
)
