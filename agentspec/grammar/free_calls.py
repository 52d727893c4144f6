"""Tool calls as models write them where nothing makes them: bare JSON, in one of a few spellings."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentspec.errors import GrammarError
from agentspec.grammar.llg import LlgGuide, compile_lark
from agentspec.grammar.schema import SEPARATORS, Whitespace, json_rule
from agentspec.grammar.tools import Tool, closed
from agentspec.grammar.vocabulary import Vocabulary

_BLANKS: dict[Whitespace, str] = {"fixed": json.dumps(SEPARATORS[1][1:]), "bounded": r"/[ \n]{0,24}/"}


def free_calls(vocabulary: Vocabulary, tools: Sequence[Tool]) -> list[LlgGuide]:
    """Guides for one call as a JSON object, for guessing only: the likely white space first, then any.

    None if there are no tools, or a tool's parameters can't be compiled: whoever enforces them says so.
    """
    guides: list[LlgGuide] = []
    for whitespace, blank in _BLANKS.items() if tools else ():
        calls = " | ".join(_call(tool, whitespace) for tool in tools)
        rules = (f"start: {calls}", f"blank: {blank}", r'arguments: "\"arguments\":" | "\"parameters\":"')
        try:
            guides.append(compile_lark(vocabulary, "\n".join(rules)))
        except GrammarError:
            return []
    return guides


def _call(tool: Tool, whitespace: Whitespace) -> str:
    inside = "" if whitespace == "fixed" else " blank"
    name, arguments = json.dumps(json.dumps(tool.name)), json_rule(closed(tool.parameters), whitespace)
    return f'"{{"{inside} "\\"name\\":" blank {name} "," blank arguments blank {arguments}{inside} "}}"'
