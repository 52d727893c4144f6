"""Python types as guides: whatever outlines takes for an output type, by its own converters.

The only importer of outlines, and only when a type is given: the import takes most of a second.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, is_typeddict

from agentspec.errors import GrammarError
from agentspec.grammar.llg import LlgGuide, compile_lark, lark_guide, regex_rule
from agentspec.grammar.schema import Whitespace, json_rule, schema_guide
from agentspec.grammar.vocabulary import Vocabulary

if TYPE_CHECKING:
    from outlines.types.dsl import Term

OutputType = Any
"""A pydantic model, dataclass or TypedDict class; `int`, `float`, `bool`, `str`, `dict`, `date`, `time`, `datetime`;
`Literal`, an `Enum` class, unions, `list[...]`, `tuple[...]`, `dict[...]`; a function, for its arguments; outlines'
`Regex`, `JsonSchema`, `CFG` and the terms built of them; a JSON Schema as a mapping or as JSON text."""


def output_guide(vocabulary: Vocabulary, output_type: OutputType, *, whitespace: Whitespace = "fixed") -> LlgGuide:
    """A guide for output of a type.

    Classes with fields, functions and JSON Schemas give one JSON document. All else is spelled as outlines spells it:
    `None`, `True` and the parentheses of a tuple as in Python, text in quotation marks but for `Literal` and `Enum`. A
    `CFG` is read as llguidance's dialect of Lark.

    Args:
        vocabulary: Of the model that will follow the guide.
        output_type: See `OutputType`.
        whitespace: In JSON documents.

    Raises:
        GrammarError: It is no type that outlines takes, or can't be enforced.
    """
    if isinstance(output_type, str):
        return schema_guide(vocabulary, _read(output_type), whitespace=whitespace)
    if isinstance(output_type, Mapping):
        return schema_guide(vocabulary, output_type, whitespace=whitespace)
    if output_type is dict:
        return schema_guide(vocabulary, {"type": "object"}, whitespace=whitespace)
    return _guide(vocabulary, _term(output_type), whitespace)


def writes_json(output_type: OutputType) -> bool:
    """Whether output of the type is one JSON document that a schema describes."""
    if isinstance(output_type, str | Mapping) or output_type is dict:
        return True
    from outlines.types.dsl import JsonSchema

    return bool(JsonSchema.is_json_schema(output_type))


def _read(text: str) -> Mapping[str, Any]:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"output_type is a text, so it must be a JSON Schema, but is not JSON: {error}") from error
    if not isinstance(schema, Mapping):
        raise GrammarError(f"output_type is a text, so it must be a JSON Schema, an object, not {text!r}")
    return schema


def _term(output_type: OutputType) -> Term:
    from outlines.types.dsl import python_types_to_terms

    try:
        return python_types_to_terms(output_type)
    except Exception as error:  # of outlines, pydantic and jsonschema
        reason = str(error).split(". Please")[0].splitlines()[0] if str(error) else type(error).__name__
        if is_typeddict(output_type):
            reason = "before Python 3.12, take TypedDict from typing_extensions"
        raise GrammarError(f"output_type {output_type!r} can't be enforced: {reason}") from error


def _guide(vocabulary: Vocabulary, term: Term, whitespace: Whitespace) -> LlgGuide:
    from outlines.types.dsl import CFG, JsonSchema

    if isinstance(term, CFG):
        return lark_guide(vocabulary, term.definition)
    if isinstance(term, JsonSchema):
        return schema_guide(vocabulary, _schema(term), whitespace=whitespace)
    return compile_lark(vocabulary, f"start: {_rule(term, whitespace)}")


def _schema(term: Any) -> Mapping[str, Any]:  # noqa: ANN401 (outlines' JsonSchema)
    if term.whitespace_pattern is not None:
        raise GrammarError(f"JsonSchema's whitespace_pattern {term.whitespace_pattern!r}: use json_whitespace instead")
    return _read(term.schema)


def _rule(term: Any, whitespace: Whitespace) -> str:  # noqa: ANN401 (any of outlines' terms)
    """A piece of a Lark rule. Where a JSON Schema is inside, outlines' regex for it would not hold it in full."""
    from outlines.types import dsl

    if isinstance(term, dsl.JsonSchema):
        return json_rule(_schema(term), whitespace)
    if not _holds_schema(term):
        return _regex(term)
    if isinstance(term, dsl.Alternatives):
        return f"({' | '.join(_rule(part, whitespace) for part in term.terms)})"
    if isinstance(term, dsl.Sequence):
        return f"({' '.join(_rule(part, whitespace) for part in term.terms)})"
    return f"({_rule(term.term, whitespace)}){_times(term)}"


def _regex(term: Term) -> str:
    from outlines.types.dsl import to_regex

    try:
        return regex_rule(to_regex(term))
    except TypeError as error:
        raise GrammarError("output_type: a CFG can be an output type, not a part of one") from error


def _holds_schema(term: Any) -> bool:  # noqa: ANN401 (any of outlines' terms)
    from outlines.types.dsl import JsonSchema

    parts = [*getattr(term, "terms", ()), *([term.term] if hasattr(term, "term") else [])]
    return isinstance(term, JsonSchema) or any(map(_holds_schema, parts))


def _times(term: Any) -> str:  # noqa: ANN401 (a quantifier of outlines)
    from outlines.types import dsl

    plain = {dsl.KleeneStar: "*", dsl.KleenePlus: "+", dsl.Optional: "?"}
    if type(term) in plain:
        return plain[type(term)]
    exact = getattr(term, "count", None)
    least = getattr(term, "min_count", 0) if exact is None else exact
    most = getattr(term, "max_count", "") if exact is None else exact
    return f"{{{least},{most}}}"
