"""JSON Schema as a guide: enforced in full, or refused before the first token."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentspec.errors import GrammarError
from agentspec.grammar.llg import LlgGuide, compile_lark
from agentspec.grammar.vocabulary import Vocabulary

Schema = Mapping[str, Any] | type
"""A JSON Schema as a mapping, or a pydantic model class."""

SEPARATORS = (", ", ": ")
"""Between items, and between key and value, as models write JSON. No other white space is allowed between tokens, which
bounds the blanks a weak model can write and lets the grammar force the text between values."""

_ONE_SCHEMA = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
)
_SCHEMA_LISTS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_BLAMED_BY_VALUE: dict[str, tuple[str, ...]] = {
    "$ref": ("Resource", "Pointer"),
    "$schema": ("Resource",),
    "format": ("Unknown format",),
    "type": ("Invalid type",),
}
_SCHEMA_MAPS = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")


def schema_guide(vocabulary: Vocabulary, schema: Schema, *, separators: tuple[str, str] = SEPARATORS) -> LlgGuide:
    """A guide for one JSON document that is valid under `schema`, its properties in the declared order.

    Keywords that describe (`title`, `description`, `default`, `examples`) change nothing. Unknown keywords mean nothing
    in JSON Schema, and nothing here.

    Raises:
        GrammarError: A keyword can't be enforced; the message names it and its path where they can be found.
    """
    plain = plain_schema(schema)
    lark = f"start: {json_rule(plain, separators)}"
    try:
        return compile_lark(vocabulary, lark)
    except GrammarError as error:
        raise GrammarError(explain(error, plain, "the JSON schema")) from error.__cause__


def plain_schema(schema: Schema) -> dict[str, Any]:
    """The schema as a mapping, its keys in the order they were declared.

    Raises:
        GrammarError: It is neither a mapping nor a pydantic model class.
    """
    if isinstance(schema, Mapping):
        return dict(schema)
    describe = getattr(schema, "model_json_schema", None)
    if not callable(describe):
        raise GrammarError(f"a JSON schema must be a mapping or a pydantic model class, not {schema!r}")
    described: dict[str, Any] = describe()
    return described


def json_rule(schema: Mapping[str, Any], separators: tuple[str, str] = SEPARATORS) -> str:
    """The piece of a Lark rule that stands for a document of `schema`.

    Raises:
        GrammarError: The schema holds what JSON can't.
    """
    item, key = separators
    options = {"item_separator": item, "key_separator": key, "whitespace_flexible": False}
    try:
        text = json.dumps({**schema, "x-guidance": options}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise GrammarError(f"the JSON schema can't be written as JSON: {error}") from error
    return f"%json {text}"


def explain(error: GrammarError, schema: Mapping[str, Any], subject: str) -> str:
    """One line that says what of `schema` can't be enforced, and where it stands, if the compiler's words tell."""
    reason = str(error).split("failed to compile JSON schema: ")[-1]
    if reason.startswith("oneOf"):
        reason = "oneOf needs alternatives that can't both hold, as seen from their types or constants: use anyOf"
    for path, keyword, value in _keywords(schema, "$"):
        if _blamed(reason, keyword, value):
            return f"{subject} can't be enforced: {keyword!r} at {path}: {reason}"
    return f"{subject} can't be enforced: {reason}"


def _blamed(reason: str, keyword: str, value: object) -> bool:
    if keyword == "pattern":
        return reason.startswith("regex parse error") and _squeezed(str(value)) in reason
    if keyword in _BLAMED_BY_VALUE and isinstance(value, str):
        return value in reason and reason.startswith(_BLAMED_BY_VALUE[keyword])
    return re.search(rf"(?<![\w$]){re.escape(keyword)}(?!\w)", reason) is not None


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _keywords(schema: object, path: str) -> Iterator[tuple[str, str, object]]:
    """Every keyword of a schema and its parts, with the path of the schema that has it."""
    if not isinstance(schema, Mapping):
        return
    for keyword, value in schema.items():
        yield path, keyword, value
        if keyword in _SCHEMA_MAPS and isinstance(value, Mapping):
            for name, part in value.items():
                yield from _keywords(part, f"{path}.{keyword}.{name}")
        elif keyword in _SCHEMA_LISTS and isinstance(value, list):
            for index, part in enumerate(value):
                yield from _keywords(part, f"{path}.{keyword}[{index}]")
        elif keyword in _ONE_SCHEMA:
            yield from _keywords(value, f"{path}.{keyword}")
