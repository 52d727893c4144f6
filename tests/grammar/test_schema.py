"""JSON Schema: enforced in full, or refused before the first token, with the keyword's name."""

from __future__ import annotations

import json
import random

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from toy_vocabulary import EOS, IM_END, TV, accepts, ids

from agentspec.errors import GrammarError
from agentspec.grammar.llg import compile_lark
from agentspec.grammar.schema import schema_guide

EMPTY = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "document", "valid"),
    [
        ({"type": "object", "properties": {}}, "{}", True),
        (EMPTY, "{}", True),
        (EMPTY, '{"a": 1}', False),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 0}, "[]", True),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 0}, '["a"]', False),
        ({"type": "string", "maxLength": 5}, r'"a\"b"', True),
        ({"type": "string", "maxLength": 3}, r'"a\nb"', True),
        ({"type": "string", "maxLength": 3}, '"abcd"', False),
        ({"type": "string"}, '"a\tb"', False),
        ({"type": "string", "pattern": "^[a-z]+$", "maxLength": 3}, '"abcd"', False),
        ({"type": "string", "pattern": "[0-9]"}, '"ab1cd"', True),
        ({"type": "string", "maxLength": 1}, '"😀"', True),
        ({"type": "string", "enum": ["naïve", "😀"]}, '"😀"', True),
        ({"type": "object", "required": ["a"]}, '{"a": 1}', True),
        ({"type": "object", "required": ["a"]}, "{}", False),
        ({"title": "t", "description": "d", "default": 1, "type": "integer"}, "3", True),
        ({"type": "boolean", "x-guidance": {"lenient": True}, "title": "true"}, "true", True),
        ({"type": "array", "items": {"type": "integer"}}, "[1, 2]", True),
        ({"type": "array", "items": {"type": "integer"}}, "[1,2]", False),
        ({"type": "array", "items": {"type": "integer"}}, "[1,  2]", False),
    ],
)
def test_a_document_is_accepted_exactly_if_it_is_valid(schema: dict, document: str, valid: bool) -> None:
    assert accepts(schema_guide(TV, schema), document) == valid


SIBLING = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"$ref": "#/properties/x"}}}
SIBLING |= {"required": ["x", "y"], "additionalProperties": False}


def test_a_reference_to_a_sibling_is_enforced() -> None:
    assert accepts(schema_guide(TV, SIBLING), '{"x": 1, "y": 2}')
    assert not accepts(schema_guide(TV, SIBLING), '{"x": 1, "y": "2"}')


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "object", "properties": {"a": {"not": {"const": 0}}}}, ["'not'", "$.properties.a"]),
        ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, ["'uniqueItems' at $"]),
        ({"type": "object", "properties": {"not": {"type": "string", "pattern": "(?=a)b"}}}, ["'pattern' at $.prop"]),
        ({"anyOf": [{"type": "null"}, {"type": "string", "pattern": "["}]}, ["'pattern' at $.anyOf[1]"]),
        ({"oneOf": [{"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "a$"}]}, ["'oneOf' at $"]),
        ({"$ref": "https://example.org/s.json"}, ["'$ref' at $", "https://example.org/s.json"]),
        ({"type": "string", "format": "banana"}, ["'format' at $", "banana"]),
        ({"type": "banana"}, ["'type' at $"]),
        ({"type": "integer", "minimum": 5, "maximum": 3}, ["Unsatisfiable"]),
        ({"const": {1}}, ["can't be written as JSON"]),
        ("text", ["mapping or a pydantic model class", "'text'"]),
    ],
)
def test_what_cannot_be_enforced_is_refused_by_name(schema: object, words: list[str]) -> None:
    with pytest.raises(GrammarError) as caught:
        schema_guide(TV, schema)  # type: ignore[arg-type]
    assert [word for word in words if word not in str(caught.value)] == []
    assert "\n" not in str(caught.value)


def test_properties_come_in_the_declared_order_and_the_order_is_part_of_the_key() -> None:
    def guide(*names: str) -> object:
        properties = {name: {"type": "string"} for name in names}
        return schema_guide(TV, {**EMPTY, "properties": properties, "required": list(names)})

    first, second = guide("zeta", "alpha", "mid"), guide("alpha", "mid", "zeta")
    assert accepts(first, '{"zeta": "", "alpha": "", "mid": ""}')  # type: ignore[arg-type]
    assert not accepts(first, '{"alpha": "", "mid": "", "zeta": ""}')  # type: ignore[arg-type]
    assert accepts(second, '{"alpha": "", "mid": "", "zeta": ""}')  # type: ignore[arg-type]


class Trip(BaseModel):
    """A docstring, which becomes the description."""

    zone: str
    days: int = 1


def test_a_pydantic_class_is_a_schema_with_its_fields_in_order() -> None:
    assert accepts(schema_guide(TV, Trip), '{"zone": "N", "days": 2}')
    assert not accepts(schema_guide(TV, Trip), '{"days": 2, "zone": "N"}')


def test_a_schema_is_compiled_once() -> None:
    compile_lark.cache_clear()
    first, again = schema_guide(TV, {"type": "null"}), schema_guide(TV, {"type": "null"})
    assert first is again


def test_a_model_in_love_with_blanks_gets_nowhere() -> None:
    schema = {**EMPTY, "properties": {"a": {"type": "string", "maxLength": 3}}, "required": ["a"]}
    taste = {10: 10, 32: 9} | {token: 8 for token in b'{"a":}'} | {EOS: 7}
    cursor, text = schema_guide(TV, schema).start(), []
    for _ in range(64):
        pick = max(ids(cursor.mask()), key=lambda token: taste.get(token, 0))
        cursor = cursor.advance(pick)  # type: ignore[assignment]
        if pick in (EOS, IM_END):
            break
        text.append(pick)
    assert bytes(text) == b'{"a": "   "}'  # blanks in the string, which may hold three, and nowhere else


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='ab"\\\n1', max_size=8))
def test_a_bounded_string_is_accepted_exactly_if_its_value_is_valid(value: str) -> None:
    schema = {"type": "string", "maxLength": 4, "pattern": '[b"\\\\\n]'}
    valid = not list(jsonschema.Draft202012Validator(schema).iter_errors(value))
    assert accepts(schema_guide(TV, schema), json.dumps(value)) == valid


@pytest.mark.parametrize(
    "schema",
    [
        SIBLING,
        {"type": "object", "required": ["a"]},
        {"type": "object", "patternProperties": {"^a": {"type": "integer"}}, "minProperties": 1, "maxProperties": 2},
        {
            "type": "array",
            "prefixItems": [{"enum": ["S"]}],
            "items": {"multipleOf": 3, "type": "integer"},
            "minItems": 2,
        },
        {"anyOf": [{"type": "string", "format": "date"}, {"type": "number", "exclusiveMinimum": 1.5}], "maxLength": 12},
    ],
)
def test_whatever_a_guide_writes_is_valid(schema: dict) -> None:
    dice, validator = random.Random(1), jsonschema.Draft202012Validator(schema)
    likely = [*b'"}]a1S,: ', EOS]
    for _ in range(12):
        cursor, text = schema_guide(TV, schema).start(), b""
        for _ in range(300):
            legal = ids(cursor.mask())
            liked = [token for token in likely if token in legal]
            pick = dice.choice(liked if liked and dice.random() < 0.95 else legal)
            if pick in TV.eos:
                break
            text += TV.tokens[pick]
            cursor = cursor.advance(pick)  # type: ignore[assignment]
        else:
            continue
        validator.validate(json.loads(text))
