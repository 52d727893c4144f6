"""Whether each keyword of a JSON Schema has a value of the kind that it must have."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any

from agentspec.grammar.schema_errors import refusal
from agentspec.grammar.schema_parts import parts, target

_MOST_COUNT = 2**32 - 1
"""Of items, characters or properties: what a repeat in the compiler's regular expressions can say."""


def check_shape(schema: Mapping[str, Any]) -> None:
    """See that the schema is well formed; what its keywords ask for is not judged here.

    Keywords that aren't in the table of kinds may have any value.

    Raises:
        GrammarError: The message names the keyword and its path.
    """
    for path, part in parts(schema):
        for keyword, value in part.items():
            fits, words = _KINDS.get(keyword, _ANY)
            if not fits(value):
                raise refusal(keyword, path, f"it must be {words}, not {reprlib.repr(value)}")
            if keyword in _COUNTS and value > _MOST_COUNT:
                raise refusal(keyword, path, f"it is more than {_MOST_COUNT:,}: leave it out")
        reference = part.get("$ref")
        if reference is not None and not _schema_or_none(target(schema, reference)):
            raise refusal("$ref", path, f"{reference!r} is not a schema")


def _schema(value: object) -> bool:
    return isinstance(value, Mapping | bool)


def _schema_or_none(value: object) -> bool:
    return value is None or _schema(value)


def _schemas(value: object) -> bool:
    return isinstance(value, list) and all(map(_schema, value))


def _named_schemas(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(_schema, value.values()))


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is(*kinds: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kinds)


_Kind = tuple[Callable[[Any], bool], str]
_ANY: _Kind = (lambda _: True, "anything")
_COUNTS = tuple(f"{end}{of}" for end in ("min", "max") for of in ("Length", "Items", "Properties", "Contains"))
_ONE = (
    *("additionalItems", "additionalProperties", "contains", "else", "if", "not", "propertyNames", "then"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_EXCLUSIVE = ("exclusiveMinimum", "exclusiveMaximum")

_KINDS: dict[str, _Kind] = {
    **dict.fromkeys(_ONE, (_schema, "a schema")),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), (_schemas, "a list of schemas")),
    **dict.fromkeys(
        ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties"),
        (_named_schemas, "an object of schemas"),
    ),
    **dict.fromkeys(("$ref", "$dynamicRef", "format", "pattern"), (_is(str), "a text")),
    **dict.fromkeys(_COUNTS, (lambda value: _number(value) and value >= 0, "a number from 0 on")),
    **dict.fromkeys(("minimum", "maximum"), (_number, "a number")),
    **dict.fromkeys(_EXCLUSIVE, (_is(int, float), "a number")),  # in draft 4 a truth value
    "dependencies": (
        lambda value: isinstance(value, Mapping) and all(_schema(need) or _texts(need) for need in value.values()),
        "an object of schemas or lists of names",
    ),
    "dependentRequired": (
        lambda value: isinstance(value, Mapping) and all(map(_texts, value.values())),
        "an object of lists of names",
    ),
    "enum": (_is(list), "a list"),
    "items": (lambda value: _schema(value) or _schemas(value), "a schema"),
    "multipleOf": (lambda value: _number(value) and value > 0, "a number above 0"),
    "required": (lambda value: isinstance(value, bool) or _texts(value), "a list of names"),  # in draft 3 a truth value
    "type": (lambda value: isinstance(value, str) or _texts(value), "the name of a type, or a list of such"),
    "uniqueItems": (_is(bool), "true or false"),
}
