"""Tools that a model may call, checked, and their calls as a grammar."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentspec.errors import ConfigError, GrammarError
from agentspec.grammar.llg import LlgGuide, compile_lark
from agentspec.grammar.schema import json_rule
from agentspec.grammar.schema_errors import explain
from agentspec.grammar.vocabulary import Vocabulary

ToolChoice = str | Mapping[str, Any]
"""`"auto"`, `"none"`, `"required"`, a tool's name, or `{"type": "function", "function": {"name": ...}}`."""

_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_COMBINED = ("$ref", "allOf", "anyOf", "oneOf", "patternProperties")


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call.

    Attributes:
        parameters: JSON Schema of the arguments, an object's. A tool without parameters takes exactly `{}`. Where
            properties are listed and nothing is said of others, no others are allowed.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]

    @property
    def definition(self) -> dict[str, Any]:
        """The tool in OpenAI's form."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


def read_tools(tools: Sequence[Mapping[str, Any]]) -> tuple[Tool, ...]:
    """Tools in OpenAI's form, checked.

    Raises:
        ConfigError: One is malformed or two share a name; the message names `tools[i]`.
    """
    read: list[Tool] = []
    for index, tool in enumerate(tools):
        try:
            read.append(read_tool(tool))
        except ConfigError as error:
            raise ConfigError(f"tools[{index}]: {error}") from None
        if read[-1].name in (other.name for other in read[:-1]):
            raise ConfigError(f"tools[{index}]: the name {read[-1].name!r} is taken by an earlier tool")
    return tuple(read)


def read_tool(tool: object) -> Tool:
    """A tool in OpenAI's form, checked.

    Raises:
        ConfigError: It is malformed.
    """
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if not isinstance(tool, Mapping) or tool.get("type", "function") != "function" or not isinstance(function, Mapping):
        raise ConfigError(f'a tool must be {{"type": "function", "function": {{"name": ...}}}}, not {tool!r}')
    name, parameters = function.get("name"), function.get("parameters")
    parameters = {} if parameters is None else parameters
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(f"a tool's name must be 1 to 128 letters, digits or any of _.:- , not {name!r}")
    if not isinstance(parameters, Mapping):
        raise ConfigError(f"parameters of {name!r} must be a JSON schema, not {parameters!r}")
    if parameters.get("type", "object") != "object":
        raise ConfigError(f"parameters of {name!r} must describe an object, not {parameters['type']!r}")
    return Tool(name, function.get("description") or "", parameters)


def chosen(tools: Sequence[Tool], choice: ToolChoice) -> tuple[Tool, ...]:
    """The tools that `choice` leaves to the model.

    Raises:
        ConfigError: It asks for a tool that isn't there, or can't be read.
    """
    if choice in ("auto", "required", "none"):
        if choice == "required" and not tools:
            raise ConfigError("tool_choice 'required' needs at least one tool")
        return () if choice == "none" else tuple(tools)
    function = choice.get("function") if isinstance(choice, Mapping) else {"name": choice}
    name = function.get("name") if isinstance(function, Mapping) else None
    named = tuple(tool for tool in tools if tool.name == name)
    if not named:
        names = ", ".join(tool.name for tool in tools) or "no tools"
        raise ConfigError(f"tool_choice must be auto, required, none or one of the tools ({names}), not {choice!r}")
    return named


def compile_calls(vocabulary: Vocabulary, tools: Sequence[Tool], lark: Callable[[], str]) -> LlgGuide:
    """The guide for a grammar that is made, by `lark`, for calls of `tools`.

    Raises:
        GrammarError: A tool's schema can't be enforced; the message names tool, keyword and path where one is to blame.
    """
    try:
        return compile_lark(vocabulary, lark())
    except GrammarError:
        for tool in tools:
            _check(vocabulary, tool)
        raise


def call_rules(rule: str, tools: Sequence[Tool], head: Callable[[Tool], str], tail: str = "") -> list[str]:
    """Lark rules for calls whose arguments are JSON: `rule`, with one alternative a tool, and what it needs.

    Args:
        rule: The name.
        tools: At least one.
        head: The terms before a tool's arguments.
        tail: The terms behind them.

    Raises:
        GrammarError: A schema holds what JSON can't, is too large, or asks for what can't be met.
    """
    names = [f"tool_{index}" for index in range(len(tools))]
    calls = (
        f"{name}: {head(tool)} {json_rule(closed(tool.parameters))} {tail}"
        for name, tool in zip(names, tools, strict=True)
    )
    return [f"{rule}: {' | '.join(names)}", *calls]


def _check(vocabulary: Vocabulary, tool: Tool) -> None:
    parameters = closed(tool.parameters)
    try:
        compile_lark(vocabulary, f"start: {json_rule(parameters)}")
    except GrammarError as error:
        raise GrammarError(explain(error, parameters, f"tool {tool.name!r}: its parameters")) from error


def closed(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What a call's arguments are held to: an object with the listed properties and, unless said, no others."""
    if not parameters:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    plain = {**parameters} if any(key in parameters for key in _COMBINED) else {"type": "object", **parameters}
    if "properties" in plain and not any(key in plain for key in _COMBINED):
        plain.setdefault("additionalProperties", False)
    return plain
