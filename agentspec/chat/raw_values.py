"""Arguments between tags, one by one: strings as they are, other values as JSON, told apart by the tool's schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentspec.chat.calls import BrokenCall, Calls
from agentspec.chat.tape import Steps, Tape
from agentspec.errors import GrammarError
from agentspec.grammar.schema import json_rule
from agentspec.grammar.tools import Tool, closed

VALUE_END = "\n</parameter>\n"
_END = json.dumps(VALUE_END)
_END_REGEX = r"\n<\/parameter>\n"
_ALL = ("string", "number", "integer", "boolean", "null", "array", "object")
_NOTES = frozenset({"title", "description", "default", "examples", "$comment", "deprecated"})
_OBJECT = _NOTES | {"type", "properties", "required", "additionalProperties", "$defs", "definitions", "$schema", "$id"}
_STRING = ("pattern", "format", "not", "if")
_PYTHON = {"True": "true", "False": "false", "None": "null"}


def parameter_rules(prefix: str, tool: Tool) -> tuple[str, list[str]]:
    """The piece of a rule for a tool's parameters in the declared order, and the rules it needs.

    Where a value may be a string or something else, texts that read as the other thing, if that is limited, are left
    out, so that whatever is written fits the schema.

    Raises:
        GrammarError: Something of the schema can't be written this way; the message names tool, keyword and path.
    """
    schema = closed(tool.parameters)
    _only(tool, schema, _OBJECT, "$")
    required, properties = schema.get("required", ()), schema.get("properties", {})
    values = _Values(tool, prefix)
    parts = []
    for name in [*properties, *(name for name in required if name not in properties)]:
        if re.search(r"[>\n]", name):
            raise cannot(tool, name, "$.properties", "a name in a tag has no '>' and no line break")
        head = json.dumps(f"<parameter={name}>\n", ensure_ascii=False)
        rule = values.add(head, properties.get(name, True), f"$.properties.{name}")
        parts.append(rule if name in required else f"{rule}?")
    extra = schema.get("additionalProperties", True)
    if extra is not False:
        head = r'"<parameter=" /[^>\n]+/ ">\n"'
        parts.append(values.add(head, extra, "$.additionalProperties") + "*")
    return " ".join(parts), values.rules


class _Values:
    """Rules of one tool's values, each up to and with its closing tag."""

    def __init__(self, tool: Tool, prefix: str) -> None:
        self.rules: list[str] = []
        self._tool = tool
        self._root = closed(tool.parameters)
        self._prefix = prefix

    def add(self, head: str, schema: object, path: str) -> str:
        """Add a rule for a parameter; its name."""
        rule = f"{self._prefix}_{len(self.rules)}"
        branches = list(_branches(self._tool, schema, self._root, path))
        texts = [branch for branch in branches if branch["type"] == "string" and _constants(branch) is None]
        options = [self._text(rule, texts, branches, path)] if texts else []
        for branch in branches:
            constants = _constants(branch)
            if constants is not None and not texts:
                options += [f"{json.dumps(text, ensure_ascii=False)} {_END}" for text in constants]
            elif branch["type"] in ("array", "object") or (not texts and branch["type"] != "string"):
                definitions = {key: self._root[key] for key in ("$defs", "definitions") if key in self._root}
                options.append(f"{json_rule(branch | definitions)} {_END}")
        self.rules.append(f"{rule}: {head} ({' | '.join(options)})")
        return rule

    def _text(
        self, rule: str, texts: Sequence[Mapping[str, Any]], branches: Sequence[Mapping[str, Any]], path: str
    ) -> str:
        """The term for free text that is held to the limits of `texts` and reads as no other branch that has limits."""
        for key in [key for text in texts for key in text if key in _STRING]:
            raise cannot(self._tool, key, path, "strings are written as they are, with no grammar but their length")
        limits = {(text.get("minLength", 0), text.get("maxLength", "")) for text in texts}
        if len(limits) > 1:
            raise cannot(self._tool, "anyOf", path, "strings are written as they are, under one limit of length")
        ((least, most),) = limits
        begins = _begins(self._tool, branches, path)
        if (least, most, begins) == (0, "", ""):
            return "raw"
        no_json = f" & ~/[{begins}](?s:.*)/" if begins else ""
        name = rule.upper() + "_TEXT"
        if least:  # a part of its own, in which no closing tag can begin: one limit beside another is too complex
            self.rules.append(f"{name}_HEAD: /(?s:.{{{least}}})/ & ~/(?s:.*)\\n(<(?s:.*))?/{no_json}")
            most, no_json = most - least if isinstance(most, int) else "", ""
        self.rules.append(f"{name}: /(?s:.{{0,{most}}}){_END_REGEX}/{no_json}")
        self.rules.append(f"{name.lower()}[lazy]: {name}")
        return f"{name}_HEAD {name.lower()}" if least else name.lower()


def _begins(tool: Tool, branches: Sequence[Mapping[str, Any]], path: str) -> str:
    """The first characters, as in a regex, of other values that have limits: a text may not begin like one."""
    others = [branch for branch in branches if branch["type"] not in ("string", "constant")]
    if any(
        not isinstance(value, str) for branch in branches for value in branch.get("enum", [branch.get("const", "")])
    ):
        raise cannot(tool, "enum", path, "a text can't be told from a listed value that is no text")
    brackets = r"\[{" if any(branch["type"] in ("array", "object") for branch in others) else ""
    limited = any(branch.keys() & _ASSERTIONS for branch in others if branch["type"] in ("number", "integer"))
    return brackets + (r"\-0-9" if limited else "")


def _branches(tool: Tool, schema: object, root: Mapping[str, Any], path: str) -> Iterator[dict[str, Any]]:
    """The schemas of one type each, or of constants, of which a value fits one."""
    plain = _resolved(schema, root)
    key = next((key for key in ("anyOf", "oneOf", "allOf") if key in plain), None)
    if key is not None:
        _only(tool, plain, _NOTES | {key, "type"}, path)
        if key == "allOf" and len(plain[key]) > 1:
            raise cannot(tool, key, path, "an argument is held to one schema")
        for part in plain[key]:
            yield from _branches(tool, part, root, path)
        return
    constants = _constants(plain)
    if constants is not None:
        yield {**plain, "type": "constant"}
        return
    types = plain.get("type", _ALL)
    yield from ({**plain, "type": each} for each in ([types] if isinstance(types, str) else types))


def _constants(schema: Mapping[str, Any]) -> list[str] | None:
    """The texts that a schema lists, if it lists its values."""
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    return None if values is None else [value if isinstance(value, str) else json.dumps(value) for value in values]


def _only(tool: Tool, schema: Mapping[str, Any], known: frozenset[str], path: str) -> None:
    if unknown := [key for key in schema if key not in known and key in _ASSERTIONS]:
        raise cannot(tool, unknown[0], path, "not where arguments are written one by one, and strings as they are")


_ASSERTIONS = frozenset(
    "$ref allOf anyOf oneOf not if then else dependentSchemas dependentRequired patternProperties propertyNames "
    "minProperties maxProperties unevaluatedProperties enum const pattern format minLength maxLength minimum maximum "
    "exclusiveMinimum exclusiveMaximum multipleOf items prefixItems contains uniqueItems minItems maxItems "
    "contentEncoding contentMediaType".split()
)


def cannot(tool: Tool, keyword: str, path: str, reason: str) -> GrammarError:
    """The error for a keyword that can't be enforced in a format's own way of writing values."""
    return GrammarError(
        f"tool {tool.name!r}: its parameters can't be enforced: {keyword!r} at {path}: {reason}; "
        "leave it out, or load the model with tool_format='hermes'"
    )


def types_of(schema: object, root: Mapping[str, Any]) -> frozenset[str]:
    """The types that a schema may allow; all where it does not say."""
    plain = _resolved(schema, root)
    if "enum" in plain or "const" in plain:
        return frozenset(_type_of(value) for value in plain.get("enum", [plain.get("const")]))
    parts = next((plain[key] for key in ("anyOf", "oneOf", "allOf") if key in plain), None)
    if parts is not None:
        return frozenset().union(*(types_of(part, root) for part in parts))
    named = plain.get("type", _ALL)
    return frozenset([named] if isinstance(named, str) else named)


def _resolved(schema: object, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema, or the definition that it refers to."""
    plain: Any = schema
    for _ in range(16):  # a definition may refer to another, and to itself
        path = plain.get("$ref") if isinstance(plain, Mapping) else None
        if not isinstance(path, str) or not path.startswith("#/"):
            return plain if isinstance(plain, Mapping) else {}
        plain = root
        for part in path[2:].split("/"):
            plain = plain.get(part) if isinstance(plain, Mapping) else None
    return {}


def _type_of(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    kinds = {str: "string", int: "integer", float: "number", list: "array"}
    return kinds.get(type(value), "object")


def read_value(tape: Tape, calls: Calls, types: frozenset[str]) -> Steps[None]:
    """Give out a value as JSON text and take its closing tag: a string while it comes, others at once.

    Raises:
        BrokenCall: The tag does not come.
    """
    if types == {"string"}:
        yield calls.arguments('"')
        end = yield from tape.show(lambda text: calls.arguments(_quoted(text)[1:-1]), VALUE_END)
        if not end:
            raise BrokenCall
        tape.take(len(end))
        yield calls.arguments('"')
        return
    text, end = yield from tape.until(VALUE_END)
    if not end:
        raise BrokenCall
    yield calls.arguments(_as_json(text, types))


def _as_json(text: str, types: frozenset[str]) -> str:
    """The value in JSON: as it is written if that is one of the types, else as a string."""
    plain = text if "string" in types else _PYTHON.get(text.strip(), text.strip())
    try:
        value = json.loads(plain, parse_constant=_refuse) if plain == plain.strip() else plain
    except (ValueError, RecursionError):
        return _quoted(text)
    kind = _type_of(value)
    fits = kind in types or (kind == "integer" and "number" in types)
    return plain if kind != "string" and (fits or "string" not in types) else _quoted(text)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
