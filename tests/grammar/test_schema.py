"""JSON Schema: enforced in full, or refused before the first token, with the keyword's name."""

from __future__ import annotations

import json
import random

import jsonschema
import pytest
from fault_cases import ORDERS, UNENFORCEABLE, strings
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from toy_vocabulary import EOS, IM_END, TV, accepts, ids, walk

from agentspec.errors import GrammarError
from agentspec.grammar.llg import compile_lark
from agentspec.grammar.regex_size import expanded
from agentspec.grammar.schema import Whitespace, schema_guide

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
        *((schema, [words]) for schema, words in UNENFORCEABLE),
        ({"type": "object", "properties": {"a": {"not": {"const": 0}}}}, ["'not' at $.properties.a:"]),
        ({"type": "object", "properties": {"not": {"type": "string", "pattern": "(?=a)b"}}}, ["'pattern' at $.prop"]),
        ({"anyOf": [{"type": "null"}, {"type": "string", "pattern": "["}]}, ["'pattern' at $.anyOf[1]"]),
        ({"oneOf": [{"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "a$"}]}, ["'oneOf' at $"]),
        ({"items": {"$ref": "https://example.org/s.json"}}, ["'$ref' at $.items", "https://example.org/s.json"]),
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
    guides = [schema_guide(TV, strings(*names)) for names in ORDERS]
    documents = [json.dumps(dict.fromkeys(names, "")) for names in ORDERS]
    assert [[accepts(guide, text) for text in documents] for guide in guides] == [[True, False], [False, True]]
    for guide, names in zip(guides, ORDERS, strict=True):
        assert (walk(guide, f'{{"{names[1]}"'.encode()), walk(guide, f'{{"{names[0]}"'.encode()) is None) == (
            None,
            False,
        )


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


LAID_OUT = json.dumps({"a": [1, {"b": 2}], "c": {}}, indent=4)


@pytest.mark.parametrize(
    ("document", "fixed", "bounded"),
    [
        ('{"a": [1, {"b": 2}], "c": {}}', True, True),
        ('{"a":[1,{"b":2}],"c":{}}', False, True),
        (LAID_OUT, False, True),
        (LAID_OUT.replace("    ", "\t"), False, True),
        ('{"a":  1}', False, False),
        ('{"a":\n\n1}', False, False),
        ('{"a":\n' + 24 * " " + "1}", False, True),
        ('{"a":\n' + 25 * " " + "1}", False, False),
        (' {"a": 1}', False, False),
        ('{"a": 1}\n', False, False),
    ],
)
def test_white_space_is_fixed_or_bounded(document: str, fixed: bool, bounded: bool) -> None:
    assert accepts(schema_guide(TV, {"type": "object"}), document) == fixed
    assert accepts(schema_guide(TV, {"type": "object"}, whitespace="bounded"), document) == bounded


@pytest.mark.parametrize(
    ("whitespace", "written"),
    [("fixed", b'{"a": "   "}'), ("bounded", b"{\n" + b" " * 24 + b'"a"\n' + b" " * 24 + b":\n")],
)
def test_a_model_in_love_with_blanks_gets_nowhere(whitespace: Whitespace, written: bytes) -> None:
    schema = {**EMPTY, "properties": {"a": {"type": "string", "maxLength": 3}}, "required": ["a"]}
    taste = {10: 10, 32: 9} | {token: 8 for token in b'{"a":}'} | {EOS: 7}
    cursor, text = schema_guide(TV, schema, whitespace=whitespace).start(), []
    for _ in range(160):
        pick = max(ids(cursor.mask()), key=lambda token: taste.get(token, 0))
        cursor = cursor.advance(pick)  # type: ignore[assignment]
        if pick in (EOS, IM_END):
            break
        text.append(pick)
    assert pick in (EOS, IM_END)
    assert bytes(text).startswith(written)
    assert json.loads(bytes(text)) == {"a": "   "}


INT = {"type": "integer"}
KINDS = {"properties": {"k": {"enum": ["x", "y"]}, "v": {}}, "required": ["k"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "accepted", "refused"),
    [
        ({"enum": ["a", "b", 1, True], "not": {"enum": ["a", 1]}}, ['"b"', "true"], ['"a"', "1"]),
        ({"type": "string", "not": {"const": "ab"}}, ['"a"', '"abc"', '"b"', '""'], ['"ab"', r'"\u0061b"']),
        ({"not": {"type": ["null", "object"]}}, ["1", '"a"', "[]"], ["null", "{}"]),
        ({"type": "object", "not": {"required": ["a"]}}, ["{}", '{"b": 1}'], ['{"a": 1}']),
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            ['{"a": 1}', '{"b": 1}'],
            ['{"a": 1, "b": 1}', "{}", "1"],
        ),
        ({"dependentRequired": {"a": ["b"]}}, ["{}", '{"b": 1}', '{"a": 1, "b": 1}', "1"], ['{"a": 1}']),
        (
            {**KINDS, "if": {"properties": {"k": {"const": "x"}}}, "then": {"properties": {"v": INT}}},
            ['{"k": "x", "v": 1}', '{"k": "y", "v": ""}', '{"k": "x"}'],
            ['{"k": "x", "v": ""}'],
        ),
        ({"then": {"type": "null"}, "minContains": 2, "uniqueItems": False}, ["[1, 1]"], []),
        ({"type": "array", "prefixItems": [INT], "unevaluatedItems": False}, ["[1]", "[]"], ["[1, 2]"]),
        ({"type": "object", "properties": {"a": INT}, "unevaluatedProperties": False}, ['{"a": 1}'], ['{"b": 1}']),
        ({"type": "object", "propertyNames": {"pattern": "^a"}}, ['{"a": 1, "ab": 2}'], ['{"b": 1}']),
        (
            {"type": "object", "properties": {"a": INT}},
            ['{"a": 1}', '{"b": ""}'],
            [r'{"\u0061": ""}', '{"a": 1, "a": ""}'],
        ),
        ({"type": "string", "format": "date"}, ['"2024-02-29"', '"2000-02-29"'], ['"2023-02-29"', '"0000-01-01"']),
        ({"type": "string", "format": "path"}, ['"/a"'], ["1"]),
    ],
)
def test_what_the_compiler_does_not_know_is_said_otherwise(schema: dict, accepted: list, refused: list) -> None:
    guide, validator = schema_guide(TV, schema), jsonschema.Draft202012Validator(schema)
    assert [text for text in accepted if not accepts(guide, text)] == []
    assert [text for text in refused if accepts(guide, text)] == []
    assert all(validator.is_valid(json.loads(text)) for text in accepted)


def nested(depth: int) -> dict:
    return {"items": nested(depth - 1)} if depth else {}


SELF = {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (nested(101), "nested more than 100 deep"),
        ({"description": "x" * 600_000}, "600,019 bytes, at most 524,288"),
        ({"type": "array", "items": {"multipleOf": 1_000_003}}, "'multipleOf' at $.items: 1000003 has too many digits"),
        ({"properties": {f"p{i}": {} for i in range(451)}}, "'properties' at $: 451 of them are optional"),
        ({"patternProperties": {f"^{i}x": {} for i in range(65)}}, "'patternProperties' at $: there are 65"),
        ({"type": "string", "pattern": "^((a{1000}){1000}){1000}$"}, "'pattern' at $: with its repeats"),
        ({"type": "object", "minProperties": 2}, "'minProperties' at $: two keys that aren't named may be the same"),
        ({"$ref": "#/x", "x": {"multipleOf": 1_000_003}}, "'multipleOf' at $.x:"),
        ({"$ref": "#"}, "none ever ends"),
        (SELF, "none ever ends"),
        ({"anyOf": [SELF, {"type": "array", "minItems": 1, "items": {"$ref": "#/anyOf/1"}}]}, "none ever ends"),
    ],
)
def test_what_would_explode_or_never_end_is_refused_at_once(schema: dict, words: str) -> None:
    with pytest.raises(GrammarError) as caught:
        schema_guide(TV, schema)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("regex", "size"),
    [
        ("(ab){2,3}|c", 7),
        (r"(?P<x>[^]a]{4}\.){5}", 25),
        ("(?:(?i)a{2,}){10}", 20),
        (r"\(a\{2}", 5),
        (r"\p{Lu}{3}", 3),
        ("(a{1000}){1000}", 1_000_000),
    ],
)
def test_a_regex_is_as_large_as_its_repeats_make_it(regex: str, size: int) -> None:
    assert expanded(regex) == size


@pytest.mark.parametrize("bound", ["maxItems", "minItems", "maxLength", "minLength"])
def test_a_huge_bound_costs_nothing(bound: str) -> None:
    schema_guide(TV, {"type": ["array", "string"], "items": {"type": "array", bound: 10**9}, bound: 10**9})


def test_a_schema_that_may_hold_itself_ends_where_it_need_not() -> None:
    tree = {"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["a"]}
    assert accepts(schema_guide(TV, tree), '{"a": {"a": null}}')


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
