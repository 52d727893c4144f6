"""Calls as Python expressions, from tools' schemas: enforced as Python literals, or refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agentspec.chat.raw_values import cannot, types_of
from agentspec.grammar.files import read_grammar
from agentspec.grammar.schema import json_rule
from agentspec.grammar.schema_limits import check_depth, check_limits
from agentspec.grammar.schema_parts import target
from agentspec.grammar.tools import Tool, closed

_TYPES = ("string", "number", "integer", "boolean", "null", "array", "object")
_PLAIN = {"boolean": '"True" | "False"', "null": '"None"'}
_CHOICES = ("anyOf", "oneOf", "allOf")
_ESCAPES = 'nrbtf"\\'
"""Those that mean the same in JSON and in Python."""

_LIMITS = {
    "string": ("pattern", "format", "minLength", "maxLength"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""What a string or a number may be held to: it is then written as JSON writes it."""

_REFUSED = {
    "object": "patternProperties propertyNames minProperties maxProperties dependentRequired dependentSchemas "
    "dependencies unevaluatedProperties".split(),
    "array": "prefixItems contains additionalItems unevaluatedItems".split(),
}
_NOWHERE = ("not", "if", "$dynamicRef")
_ASSERTIONS = frozenset(
    [*_NOWHERE, *_CHOICES, *(key for keys in (*_LIMITS.values(), *_REFUSED.values()) for key in keys)]
) | {"$ref", "type", "enum", "const", "properties", "required", "additionalProperties", "items", "uniqueItems"}


def python_rules(tools: Sequence[Tool]) -> list[str]:
    """The rule `one`, a call of one of the tools, and all it needs.

    Required arguments come first, in the declared order, then the others, each of which may be left out.

    Raises:
        GrammarError: Something of a schema can't be enforced in Python's spelling; the message names tool, keyword and
            path.
    """
    return [
        "one: " + " | ".join(f"tool_{index}" for index in range(len(tools))),
        *(line for index, tool in enumerate(tools) for line in _call(f"tool_{index}", tool)),
        read_grammar("python_values.lark"),
    ]


def _call(rule: str, tool: Tool) -> list[str]:
    schema = closed(tool.parameters)
    check_depth(schema)
    check_limits(schema)
    values = _Values(tool, schema, rule)
    plain: Any = target(schema, schema["$ref"]) if "$ref" in schema else schema
    for key in _CHOICES:
        if key in plain:
            raise cannot(tool, key, "$", "an expression lists its arguments in one way")
    body = values.members(plain, "$", _keyword)
    return [f'{rule}: {json.dumps(tool.name + "(")} {body} ")"', *values.rules]


def _keyword(name: str | None) -> str | None:
    if name is None:
        return 'py_name "="'
    return json.dumps(f"{name}=", ensure_ascii=False) if re.fullmatch(r"[^\W\d]\w*", name) else None


def _key(name: str | None) -> str | None:
    return 'py_text ": "' if name is None else f'({_literal(name)}) ": "'


def _literal(value: object) -> str:
    """The terms for one value, a text in either quotation mark."""
    texts = [repr(value)]
    if isinstance(value, str):
        quoted = texts[0][1:-1]
        texts = [json.dumps(value, ensure_ascii=False), f"'{_single(quoted, texts[0][0])}'"]
    return " | ".join(dict.fromkeys(json.dumps(text, ensure_ascii=False) for text in texts))


def _single(inside: str, mark: str) -> str:
    return inside if mark == "'" else inside.replace("'", "\\'")


class _Values:
    """The rules of one tool's values."""

    def __init__(self, tool: Tool, root: Mapping[str, Any], prefix: str) -> None:
        self.rules: list[str] = []
        self._tool = tool
        self._root = root
        self._prefix = prefix
        self._references: dict[str, str] = {}

    def members(self, schema: Mapping[str, Any], path: str, head: Callable[[str | None], str | None]) -> str:
        """The term for an object's members, each begun by `head` of its name; of None, by any name."""
        self._check(schema, path, "object")
        properties, required = schema.get("properties", {}), schema.get("required", ())
        names = [*properties, *(name for name in required if name not in properties)]
        extra = schema.get("additionalProperties", not names)
        if extra is not False and names:
            raise cannot(self._tool, "additionalProperties", path, "others can't be told from those that are listed")
        if extra is not False:
            one = f"{head(None)} {self.value(extra, f'{path}.additionalProperties')}"
            return f'({one} (", " {one})*)?'
        pairs = {}
        for name in names:
            begins = head(name)
            if begins is None:
                raise cannot(self._tool, name, f"{path}.properties", "an argument's name must be one in Python too")
            pairs[name] = f"{begins} {self.value(properties.get(name, True), f'{path}.properties.{name}')}"
        must = [pairs[name] for name in names if name in required]
        return self._listed(must, [pairs[name] for name in names if name not in required])

    def _listed(self, must: Sequence[str], may: Sequence[str]) -> str:
        """All of the first and any of the second, in order, with commas between."""
        if must or not may:
            return ' ", " '.join(must) + "".join(f' (", " {pair})?' for pair in may)
        pairs = [self._add(pair) for pair in may]
        rests = [""]
        for pair in reversed(pairs[1:]):
            rests.insert(0, self._add(f'(", " {pair})? {rests[0]}'))
        return "(" + " | ".join(f"{pair} {rest}" for pair, rest in zip(pairs, rests, strict=True)) + ")?"

    def _add(self, body: str) -> str:
        rule = f"{self._prefix}_{len(self.rules)}"
        self.rules.append(f"{rule}: {body}")
        return rule

    def value(self, schema: object, path: str) -> str:
        """The term for a value."""
        if schema is False:
            raise cannot(self._tool, "false", path, "no value fits it")
        if not isinstance(schema, Mapping) or not schema.keys() & _ASSERTIONS:
            return "py_any"
        for key in _NOWHERE:
            if key in schema:
                raise cannot(self._tool, key, path, "no grammar of Python literals holds to it")
        if "$ref" in schema:
            self._alone(schema, "$ref", path)
            return self._reference(schema["$ref"], path)
        choice = next((key for key in _CHOICES if key in schema), None)
        options = self._chosen(schema, choice, path) if choice else self._typed(schema, path)
        return f"({' | '.join(options)})"

    def _reference(self, reference: str, path: str) -> str:
        if reference not in self._references:
            found = target(self._root, reference)
            if found is None:
                raise cannot(self._tool, "$ref", path, f"{reference} is not in the schema")
            rule = f"{self._prefix}_ref_{len(self._references)}"
            self._references[reference] = rule
            self.rules.append(f"{rule}: {self.value(found, path)}")
        return self._references[reference]

    def _chosen(self, schema: Mapping[str, Any], key: str, path: str) -> Iterator[str]:
        self._alone(schema, key, path)
        choices = schema[key]
        if key == "allOf" and len(choices) > 1:
            raise cannot(self._tool, key, path, "a value is held to one schema")
        types = [kind for choice in choices for kind in types_of(choice, self._root)]
        mixed = len(types) > len(set(types)) or {"integer", "number"} <= set(types)
        if key == "oneOf" and mixed:
            raise cannot(self._tool, key, path, "its alternatives must differ in type: use anyOf")
        return (self.value(choice, f"{path}.{key}[{index}]") for index, choice in enumerate(choices))

    def _typed(self, schema: Mapping[str, Any], path: str) -> Iterator[str]:
        named = schema.get("type", _TYPES)
        types = [named] if isinstance(named, str) else named
        if "enum" in schema or "const" in schema:
            key = "enum" if "enum" in schema else "const"
            self._alone(schema, key, path, "type")
            yield from map(_literal, schema["enum"] if key == "enum" else [schema["const"]])
            return
        for kind in types:
            self._check(schema, path, kind)
            yield self._of(schema, kind, path)

    def _of(self, schema: Mapping[str, Any], kind: str, path: str) -> str:
        limits = {key: schema[key] for key in _LIMITS.get(kind, ()) if key in schema}
        if limits:
            return _held({"type": kind, **limits})
        if kind == "object":
            return f'"{{" {self.members(schema, path, _key)} "}}"'
        if kind == "array":
            return self._list(schema, path)
        if kind in _PLAIN:
            return _PLAIN[kind]
        known = {"string": "py_text", "integer": "PY_INTEGER", "number": "PY_NUMBER"}
        if kind not in known:
            raise cannot(self._tool, "type", path, f"there is no type {kind!r}")
        return known[kind]

    def _list(self, schema: Mapping[str, Any], path: str) -> str:
        items = schema.get("items", True)
        if isinstance(items, list) or schema.get("uniqueItems"):
            key = "items" if isinstance(items, list) else "uniqueItems"
            raise cannot(self._tool, key, path, "no grammar of Python literals holds to it")
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if most == 0 or items is False:
            return '"[]"'
        item = self._add(self.value(items, f"{path}.items"))
        more = f'(", " {item}){{{max(0, least - 1)},{"" if most is None else most - 1}}}'
        return f'"[" {item} {more} "]"' if least else f'"[" ({item} {more})? "]"'

    def _check(self, schema: Mapping[str, Any], path: str, kind: str) -> None:
        for key in _REFUSED.get(kind, ()):
            if key in schema and not (key.startswith("unevaluated") and schema[key] is False):
                raise cannot(self._tool, key, path, "no grammar of Python literals holds to it")

    def _alone(self, schema: Mapping[str, Any], key: str, path: str, *also: str) -> None:
        for other in schema:
            if other in _ASSERTIONS and other not in (key, *also):
                raise cannot(self._tool, other, path, f"not beside {key!r}")


def _held(schema: Mapping[str, Any]) -> str:
    """A string or number under limits, as JSON writes it, which Python reads alike."""
    rule = json_rule(schema)
    if schema["type"] != "string":
        return rule
    plain = json.loads(rule.removeprefix("%json "))
    plain["x-guidance"]["json_allowed_escapes"] = _ESCAPES
    return f"%json {json.dumps(plain)}"
