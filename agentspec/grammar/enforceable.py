"""Whether a schema, or tools, can be enforced: told before there is a model, over the bytes that all of them spell."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from agentspec.grammar.schema import schema_guide
from agentspec.grammar.tools import ToolChoice, call_rules, chosen, compile_calls, read_tool
from agentspec.grammar.vocabulary import Vocabulary

_END = 256


def check_schema(schema: Mapping[str, Any]) -> None:
    """See that a document can be held to a JSON Schema.

    Raises:
        GrammarError: It can't; the message names the keyword and its path where they can be found.
    """
    schema_guide(_bytes(), schema)


def check_tools(tools: Sequence[Mapping[str, Any]], choice: ToolChoice = "auto") -> None:
    """See that calls of tools in OpenAI's form can be held to their parameters, as JSON; a model's format may ask more.

    Raises:
        ConfigError: A tool is malformed, or the choice can't be honoured. Two may share a name until they are used.
        GrammarError: Parameters can't be enforced; the message names tool, keyword and path.
    """
    read = chosen([read_tool(tool) for tool in tools], choice)
    if read:
        rules = lambda: "\n".join(call_rules("start", read, lambda tool: json.dumps(tool.name)))  # noqa: E731
        compile_calls(_bytes(), read, rules)


@cache
def _bytes() -> Vocabulary:
    return Vocabulary([*(bytes([byte]) for byte in range(_END)), None], special={_END: "<end>"}, eos=[_END])
