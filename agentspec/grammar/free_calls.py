"""Tool calls as models write them where nothing makes them: bare JSON, in one of a few spellings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product

from agentspec.errors import GrammarError
from agentspec.grammar.llg import LlgGuide, compile_lark
from agentspec.grammar.schema import SEPARATORS, Whitespace, json_rule
from agentspec.grammar.tools import Tool, closed
from agentspec.grammar.vocabulary import Vocabulary

_BLANKS: dict[Whitespace, str] = {"fixed": json.dumps(SEPARATORS[1][1:]), "bounded": r"/[ \n]{0,24}/"}
_ARGUMENTS = ("arguments", "parameters")


def free_calls(vocabulary: Vocabulary, tools: Sequence[Tool]) -> list[LlgGuide]:
    """Guides for one call as a JSON object, for guessing only: the likely spelling first, then any white space.

    None if a tool's parameters can't be compiled: whoever enforces them says so.
    """
    guides: list[LlgGuide] = []
    for whitespace, arguments in product(_BLANKS, _ARGUMENTS):
        rules = [_call(tool, arguments, whitespace) for tool in tools]
        try:
            guides.append(compile_lark(vocabulary, f"start: {' | '.join(rules)}\nblank: {_BLANKS[whitespace]}"))
        except GrammarError:
            return []
    return guides


def _call(tool: Tool, arguments: str, whitespace: Whitespace) -> str:
    ends = "" if whitespace == "fixed" else "blank "
    head = (ends, '"\\"name\\":" blank ', json.dumps(json.dumps(tool.name)), ' "," ', "blank ")
    rest = (json.dumps(f'"{arguments}":'), " blank ", json_rule(closed(tool.parameters), whitespace), f" {ends}")
    return "".join(('"{" ', *head, *rest, '"}"'))
