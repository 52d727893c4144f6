"""JSON Schema as a guide: enforced in full, or refused before the first token."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, get_args

from agentspec.errors import ConfigError, GrammarError
from agentspec.grammar.llg import CACHED_GRAMMARS, LlgGuide, compile_lark
from agentspec.grammar.schema_errors import THE_SCHEMA, explain
from agentspec.grammar.schema_limits import MOST_BYTES, check_depth, check_grown, check_limits
from agentspec.grammar.schema_numbers import check_numbers
from agentspec.grammar.schema_parts import parts
from agentspec.grammar.schema_rewrites import rewritten
from agentspec.grammar.schema_shape import check_shape
from agentspec.grammar.vocabulary import Vocabulary

Schema = Mapping[str, Any] | type
"""A JSON Schema as a mapping, or a pydantic model class."""

Whitespace = Literal["fixed", "bounded"]
"""White space between JSON's tokens. `"fixed"`: `", "` between items, `": "` after a key, and no other, so that the
grammar forces the text between values. `"bounded"`: between any two, nothing, one blank, or one line break with up to
24 blanks or 12 tabs, as the model likes. Neither allows any before the document or after it."""

SEPARATORS = (", ", ": ")
"""Between items, and between key and value, as models write JSON."""

_BLANKS = r" |\n( {0,24}|\t{0,12})"
_NO_UNICODE_ESCAPES = 'nrbtf"\\'


def schema_guide(vocabulary: Vocabulary, schema: Schema, *, whitespace: Whitespace = "fixed") -> LlgGuide:
    """A guide for one JSON document that is valid under `schema`, its properties in the declared order.

    Keywords that describe (`title`, `description`, `default`, `examples`) change nothing. Unknown keywords mean nothing
    in JSON Schema, and nothing here. docs/schemas.md says which are enforced.

    Raises:
        GrammarError: A keyword can't be enforced, or the schema is too large; the message names the keyword and its
            path where they can be found.
        ConfigError: `whitespace` is not one of its values.
    """
    plain = plain_schema(schema)
    try:
        return compile_lark(vocabulary, f"start: {json_rule(plain, whitespace)}")
    except GrammarError as error:
        raise GrammarError(explain(error, plain, "the JSON schema")) from error.__cause__


def plain_schema(schema: Schema) -> dict[str, Any]:
    """The schema as a mapping, its keys in the order they were declared.

    Raises:
        GrammarError: It is neither a mapping nor a pydantic model class, or nested too deep.
    """
    if isinstance(schema, Mapping):
        check_depth(schema)
        return dict(schema)
    describe = getattr(schema, "model_json_schema", None)
    if not callable(describe):
        raise GrammarError(f"a JSON schema must be a mapping or a pydantic model class, not {schema!r}")
    described: dict[str, Any] = describe()
    return described


def json_rule(schema: Mapping[str, Any], whitespace: Whitespace = "fixed") -> str:
    """The piece of a Lark rule that stands for a document of `schema`.

    Raises:
        GrammarError: The schema holds what JSON can't, is too large, or asks for what can't be met.
        ConfigError: `whitespace` is not one of its values.
    """
    check_depth(schema)
    try:
        text = json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise GrammarError(f"{THE_SCHEMA}can't be written as JSON: {error}") from error
    if len(text) > MOST_BYTES:
        raise GrammarError(f"{THE_SCHEMA}is too large: it has {len(text):,} bytes, at most {MOST_BYTES:,} may be")
    return _rule(text, whitespace)


@lru_cache(maxsize=CACHED_GRAMMARS)
def _rule(text: str, whitespace: Whitespace) -> str:
    plain = _checked(json.loads(text))
    return f"%json {json.dumps({**plain, 'x-guidance': _options(plain, whitespace)})}"


def _checked(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        check_shape(schema)
        plain = rewritten(schema)
        check_grown(plain)
        check_limits(plain)
        check_numbers(plain)
    except GrammarError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError) as error:
        raise GrammarError(f"{THE_SCHEMA}is malformed: {_first_line(error)}") from error
    return plain


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _options(schema: Mapping[str, Any], whitespace: Whitespace) -> dict[str, Any]:
    if whitespace not in get_args(Whitespace):
        raise ConfigError(f"json_whitespace must be {' or '.join(get_args(Whitespace))}, not {whitespace!r}")
    escapes = {"json_allowed_escapes": _NO_UNICODE_ESCAPES} if any(_open(part) for _, part in parts(schema)) else {}
    if whitespace == "bounded":
        return {"whitespace_flexible": True, "whitespace_pattern": _BLANKS, **escapes}
    item, key = SEPARATORS
    return {"item_separator": item, "key_separator": key, "whitespace_flexible": False, **escapes}


def _open(part: Mapping[str, Any]) -> bool:
    r"""Whether an object of it may have keys beside those it names.

    The compiler tells such keys from the named ones by their spelling, and `"\u0061"` spells `a` too: escapes by
    number are then left out, or a named key could be written a second time and escape its schema.
    """
    named = part.get("properties") or part.get("patternProperties") or part.get("required")
    return bool(named) and part.get("additionalProperties", True) is not False
