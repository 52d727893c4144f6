"""Tool calls as a guide: free text until the opening marker, then a call that is valid for one of the tools."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from agentspec.errors import ConfigError, GrammarError
from agentspec.grammar.base import FREE, Cursor, Guide, Mask
from agentspec.grammar.files import read_grammar
from agentspec.grammar.llg import EndCursor, LlgGuide, compile_lark
from agentspec.grammar.schema import SEPARATORS, explain, json_rule
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.segments import Segment

OPEN = "<tool_call>"
CLOSE = "</tool_call>"

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
            read.append(_read_tool(tool))
        except ConfigError as error:
            raise ConfigError(f"tools[{index}]: {error}") from None
        if read[-1].name in (other.name for other in read[:-1]):
            raise ConfigError(f"tools[{index}]: the name {read[-1].name!r} is taken by an earlier tool")
    return tuple(read)


def _read_tool(tool: object) -> Tool:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if not isinstance(tool, Mapping) or tool.get("type", "function") != "function" or not isinstance(function, Mapping):
        raise ConfigError(f'a tool must be {{"type": "function", "function": {{"name": ...}}}}, not {tool!r}')
    name, parameters = function.get("name"), function.get("parameters") or {}
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


def tool_guide(
    vocabulary: Vocabulary, tools: Sequence[Tool], choice: ToolChoice = "auto", *, parallel: bool = True
) -> Guide:
    """A guide for an answer that may or must call tools, in the Hermes format.

    Under `"auto"` text is free, at no cost, until the opening marker is out; from there on the call is held to its
    tool's schema, and after it comes another call or the end. Under `"required"` the first call starts at once; a named
    tool is called exactly once. Under `"none"` the marker is kept from being written.

    Args:
        vocabulary: Of the model that will follow the guide.
        tools: From `read_tools`.
        choice: What the caller wants called.
        parallel: Whether more than one call is allowed.

    Raises:
        ConfigError: `choice` asks for a tool that isn't there.
        GrammarError: A tool's schema can't be enforced; the message names tool, keyword and path.
    """
    allowed = chosen(tools, choice)
    if not tools:
        return FREE
    if choice == "none":
        return _FreeUntilCall(vocabulary, None)
    more = " another*" if parallel and choice in ("auto", "required") else ""
    if choice == "auto":
        return _FreeUntilCall(vocabulary, _calls(vocabulary, allowed, "body" + more))
    return _calls(vocabulary, allowed, "call" + more)


def _calls(vocabulary: Vocabulary, tools: Sequence[Tool], start: str) -> LlgGuide:
    rules = [
        read_grammar("hermes_tools.lark"),
        f"start: {start}",
        f"open: {_marker(vocabulary, OPEN)}",
        f"close: {_marker(vocabulary, CLOSE)}",
        "object: " + " | ".join(f"tool_{index}" for index in range(len(tools))),
        *(f"tool_{index}: {_object(tool)}" for index, tool in enumerate(tools)),
    ]
    try:
        return compile_lark(vocabulary, "\n".join(rules))
    except GrammarError:
        for tool in tools:
            _check(vocabulary, tool)
        raise


def _check(vocabulary: Vocabulary, tool: Tool) -> None:
    parameters = _closed(tool.parameters)
    try:
        compile_lark(vocabulary, f"start: {json_rule(parameters)}")
    except GrammarError as error:
        raise GrammarError(explain(error, parameters, f"tool {tool.name!r}: its parameters")) from error


def _marker(vocabulary: Vocabulary, text: str) -> str:
    """The marker in a rule: the control token of that name where there is one, else its text, in any tokens."""
    token = vocabulary.control(text)
    return json.dumps(text) if token is None else f"<[{token}]>"


def _object(tool: Tool) -> str:
    item, key = SEPARATORS
    head = f'{{"name"{key}"{tool.name}"{item}"arguments"{key}'
    return f'{json.dumps(head)} {json_rule(_closed(tool.parameters))} "}}"'


def _closed(parameters: Mapping[str, Any]) -> dict[str, Any]:
    if not parameters:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    closed = {"type": "object", **parameters} if not any(key in parameters for key in _COMBINED) else {**parameters}
    if "properties" in closed and not any(key in closed for key in _COMBINED):
        closed.setdefault("additionalProperties", False)
    return closed


class _FreeUntilCall:
    """Free text until the marker, then the calls; with no calls allowed, free text without the marker."""

    def __init__(self, vocabulary: Vocabulary, calls: LlgGuide | None) -> None:
        self.vocabulary = vocabulary
        self._calls = calls
        self._marker = OPEN.encode()
        self._token = vocabulary.control(OPEN)
        self._masks: dict[int, Mask | None] = {}
        self._may_follow: dict[bytes, bool] = {}

    def start(self) -> Cursor:
        return _Text(self, 0)

    def read(self, matched: int, token: int) -> tuple[int, bytes | None]:
        """How much of the marker is out after `token`, and what the token says behind it (None: it is not out)."""
        text = self._text(token)
        if not matched and self._marker[:1] not in text:
            return 0, None
        seen = self._marker[:matched] + text
        found = seen.find(self._marker)
        if found >= 0:
            return len(self._marker), seen[found + len(self._marker) :]
        sizes = range(min(len(self._marker) - 1, len(seen)) if text else 0, 0, -1)
        return next((size for size in sizes if seen.endswith(self._marker[:size])), 0), None

    def after(self, rest: bytes) -> Cursor | None:
        """The place in the calls after what came with the marker's last token; None if it may not come there."""
        return self._calls.after(rest) if self._calls is not None else None

    def mask(self, matched: int) -> Mask | None:
        """Every token but those that end the marker and go on as no call does; None where there are none of those."""
        if matched not in self._masks:
            self._masks[matched] = self._compute_mask(matched)
        return self._masks[matched]

    def _compute_mask(self, matched: int) -> Mask | None:
        ends = tuple(self._marker[size:] for size in range(1, matched + 1))
        closing = (t for t in self._closing if self._text(t).startswith(ends) or self._marker in self._text(t))
        wrong = [token for token in closing if not self._legal(matched, token)]
        if not wrong:
            return None
        mask = np.full((len(self.vocabulary) + 31) // 32, 0xFFFFFFFF, dtype=np.uint32)
        for token in wrong:
            mask[token >> 5] &= ~np.uint32(1 << (token & 31))
        mask.flags.writeable = False
        return mask

    def _legal(self, matched: int, token: int) -> bool:
        _, rest = self.read(matched, token)
        if rest is None:
            return True
        if rest not in self._may_follow:
            self._may_follow[rest] = self.after(rest) is not None
        return self._may_follow[rest]

    @cached_property
    def _closing(self) -> Sequence[int]:
        """Tokens that can hold the marker's last byte."""
        return (*_tokens_with(self.vocabulary, self._marker[-1:]), *([self._token] if self._token is not None else ()))

    def _text(self, token: int) -> bytes:
        if token == self._token:
            return self._marker
        return self.vocabulary.tokens[token] if 0 <= token < len(self.vocabulary) else b""


@lru_cache(maxsize=8)
def _tokens_with(vocabulary: Vocabulary, part: bytes) -> tuple[int, ...]:
    return tuple(token for token, text in enumerate(vocabulary.tokens) if part in text)


class _Text:
    """A place in free text, with some first bytes of the marker out."""

    __slots__ = ("_following", "_guide", "_matched")

    segment = Segment.PROSE
    accepting = True

    def __init__(self, guide: _FreeUntilCall, matched: int) -> None:
        self._guide = guide
        self._matched = matched
        self._following: dict[int, Cursor | None] = {}

    def mask(self) -> Mask | None:
        return self._guide.mask(self._matched)

    def forced(self, limit: int) -> tuple[int, ...]:
        return ()

    def advance(self, token: int) -> Cursor | None:
        if token in self._guide.vocabulary.eos:
            return EndCursor(self._guide.vocabulary)
        matched, rest = self._guide.read(self._matched, token)
        if rest is None:
            return self if matched == self._matched else _Text(self._guide, matched)
        if token not in self._following:
            self._following[token] = self._guide.after(rest)
        return self._following[token]
