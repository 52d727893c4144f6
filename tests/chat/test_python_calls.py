"""Python literals as arguments: of each schema just what fits may be written, and it is read as what Python reads."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from format_doubles import chat, parse
from toy_vocabulary import EOS, walk

from agentspec.chat.calls import Written
from agentspec.chat.formats.llama_pythonic import LLAMA_PYTHONIC
from agentspec.errors import GrammarError
from agentspec.grammar.tools import Tool, read_tools

TEXT, WHOLE, YES, NONE = ({"type": kind} for kind in ("string", "integer", "boolean", "null"))


def tools(schema: Any, *, whole: bool = False) -> tuple[Tool, ...]:
    """A tool of one argument `v`; of these parameters if `whole`."""
    parameters = schema if whole else {"type": "object", "properties": {"v": schema}, "required": ["v"]}
    return read_tools([{"type": "function", "function": {"name": "f", "parameters": parameters}}])


def read(schema: Any, written: str, *, whole: bool = False) -> tuple[bool, object]:
    """Whether these arguments may be written, and what they are read as."""
    made, _ = chat(LLAMA_PYTHONIC)
    known = tools(schema, whole=whole)
    text = f"[f({written})]"
    allowed = walk(made.guide(known, "required"), [*text.encode(), EOS]) is not None
    calls = parse(LLAMA_PYTHONIC, list(text), known).tool_calls
    return allowed, json.loads(calls[0].arguments) if calls else None


@pytest.mark.parametrize(
    ("schema", "written", "allowed"),
    [
        (TEXT, "'a'", True),
        (TEXT, '"it\'s"', True),
        (TEXT, r"'it\'s \"so\"\n\t\\ \x00 \u00e9 \U0001f600'", True),
        (TEXT, "a", False),
        (TEXT, "1", False),
        (TEXT, r"'\ud83d'", False),
        ({"type": "string", "pattern": "^a+$"}, '"aa"', True),
        ({"type": "string", "pattern": "^a+$"}, '"ab"', False),
        ({"type": "string", "maxLength": 2}, '"abc"', False),
        ({"type": "string", "minLength": 1}, r'"\n"', True),
        (WHOLE, "-3", True),
        (WHOLE, "1.5", False),
        ({"type": "integer", "minimum": 10}, "9", False),
        ({"type": "integer", "minimum": 10}, "10", True),
        ({"type": "number"}, "1.5e-3", True),
        (YES, "True", True),
        (YES, "true", False),
        (NONE, "None", True),
        ({"enum": ["it's", 1, None, True, 1.5]}, "'it\\'s'", True),
        ({"enum": ["it's", 1, None, True, 1.5]}, '"it\'s"', True),
        ({"enum": ["it's", 1, None, True, 1.5]}, "None", True),
        ({"enum": ["it's", 1, None, True, 1.5]}, "2", False),
        ({"const": {"a": [True]}}, "{'a': [True]}", True),
        ({"type": ["string", "null"]}, "None", True),
        ({"anyOf": [WHOLE, YES]}, "False", True),
        ({"anyOf": [WHOLE, YES]}, "'x'", False),
        ({"type": "array", "items": YES}, "[True, False]", True),
        ({"type": "array", "items": YES}, "[]", True),
        ({"type": "array", "items": YES, "minItems": 1, "maxItems": 2}, "[]", False),
        ({"type": "array", "items": YES, "minItems": 1, "maxItems": 2}, "[True, True]", True),
        ({"type": "array", "items": YES, "minItems": 1, "maxItems": 2}, "[True, True, True]", False),
        ({"type": "array", "items": YES, "minItems": 2}, "[True]", False),
        ({"type": "array", "maxItems": 0}, "[]", True),
        ({"type": "object", "properties": {"a-b": YES}, "required": ["a-b"]}, "{'a-b': True}", True),
        ({"type": "object", "properties": {"a-b": YES}, "required": ["a-b"]}, "{}", False),
        ({"type": "object", "properties": {"a": YES, "b": NONE, "c": WHOLE}}, "{'a': True, \"c\": 1}", True),
        ({"type": "object", "properties": {"a": YES, "b": NONE, "c": WHOLE}}, "{'b': None}", True),
        ({"type": "object", "properties": {"a": YES, "b": NONE, "c": WHOLE}}, "{'b': None, 'a': True}", False),
        ({"type": "object", "additionalProperties": WHOLE}, "{'x': 1, 'y': 2}", True),
        ({"type": "object", "additionalProperties": WHOLE}, "{'x': 'y'}", False),
        ({}, "[1, {'a': None, 'b': [True, 'x']}]", True),
    ],
)
def test_a_value_is_held_to_its_schema_and_read_as_python_reads_it(schema: object, written: str, allowed: bool) -> None:
    found, arguments = read(schema, f"v={written}")
    assert found == allowed
    if allowed:
        assert arguments == {"v": ast.literal_eval(written)}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("'''a\n'b''\"'''", "a\n'b''\""),
        ('""', ""),
        (r"'\d\0\q\xzz'", "\\d\0\\q\\xzz"),
        (r"'\ud83d\ude00'", "😀"),
        ("'a\\\nb'", "ab"),
        ("(1, 2,)", [1, 2]),
        ("[ 1 ,\n{ 'a' : .5 , } ]", [1, {"a": 0.5}]),
        ("true", True),
        ("0x10", 16),
        ("1_000", 1000),
        ("1e400", float("inf")),
    ],
)
def test_what_models_write_beyond_the_grammar_is_read_all_the_same(written: str, value: object) -> None:
    assert read({}, f"v = {written}") == (False, {"v": value})


@pytest.mark.parametrize("written", ["v=x", "v=[1", "v='a", "'a'", "v=1 w=2", "v={1: 2}", "v=[1)", "**{}", "v=nan"])
def test_what_is_no_call_with_literals_by_name_is_broken(written: str) -> None:
    assert read({}, written) == (False, None)


def test_a_value_nested_without_end_is_broken_and_not_an_error() -> None:
    assert read({}, f"v={'[' * 2000}{']' * 2000}")[1] is None


SOME = {"type": "object", "properties": {"a": WHOLE, "b": WHOLE, "c": WHOLE}, "required": ["b"]}
NODE = {
    "type": "object",
    "properties": {"n": {"$ref": "#/$defs/n"}},
    "required": ["n"],
    "$defs": {
        "n": {
            "type": "object",
            "properties": {"v": WHOLE, "next": {"anyOf": [{"$ref": "#/$defs/n"}, NONE]}},
            "required": ["v"],
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "written", "allowed"),
    [
        (SOME, "b=1", True),
        (SOME, "b=1, a=2, c=3", True),
        (SOME, "b=1, c=3", True),
        (SOME, "a=2, b=1", False),
        (SOME, "b=1, d=3", False),
        ({**SOME, "required": []}, "", True),
        ({**SOME, "required": []}, "a=1, c=3", True),
        ({**SOME, "required": []}, "c=3", True),
        ({**SOME, "required": []}, "c=3, a=1", False),
        ({"type": "object", "additionalProperties": WHOLE}, "x=1, y=2", True),
        ({}, "x=1", False),
        (NODE, "n={'v': 1, 'next': {'v': 2, 'next': None}}", True),
        (NODE, "n={'v': 1, 'next': {'next': None}}", False),
    ],
)
def test_required_arguments_come_first_and_others_may_be_left_out(schema: Any, written: str, allowed: bool) -> None:
    assert read(schema, written, whole=True)[0] == allowed


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "object", "properties": {"a-b": TEXT}}, "'a-b' at $.properties: "),
        ({"type": "object", "anyOf": [{"required": ["a"]}], "properties": {"a": TEXT}}, "'anyOf' at $: "),
        ({"type": "object", "properties": {"a": TEXT}, "minProperties": 1}, "'minProperties' at $: "),
        ({"type": "object", "properties": {"a": TEXT}, "additionalProperties": TEXT}, "'additionalProperties' at $: "),
        ({"type": "object", "properties": {"a": {"not": TEXT}}}, "'not' at $.properties.a: "),
        ({"type": "object", "properties": {"a": {"allOf": [TEXT, TEXT]}}}, "'allOf' at $.properties.a: "),
        ({"type": "object", "properties": {"a": {"oneOf": [TEXT, TEXT]}}}, "'oneOf' at $.properties.a: "),
        ({"type": "object", "properties": {"a": {"anyOf": [TEXT], "minLength": 1}}}, "'minLength' at $.properties.a: "),
        ({"type": "object", "properties": {"a": {"enum": ["x"], "pattern": "x"}}}, "'pattern' at $.properties.a: "),
        (
            {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "array", "uniqueItems": True}}}},
            "'uniqueItems' at $.properties.a.items: ",
        ),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}}, "'$ref' at $.properties.a: "),
    ],
)
def test_what_cannot_be_said_in_literals_is_refused_by_name(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(GrammarError) as caught:
        chat(LLAMA_PYTHONIC)[0].guide(tools(schema, whole=True))
    assert str(caught.value).startswith(f"tool 'f': its parameters can't be enforced: {words}")


@pytest.mark.parametrize("text", ['it\'s "so"', "\x00\x7f\xa0\u2028\U000e0001", "'''", '\\n"', "😀", ""])
def test_any_text_can_be_written_and_read_back(text: str) -> None:
    written = LLAMA_PYTHONIC.write([Written("f", {"v": text})])
    assert read(TEXT, written[3:-2]) == (True, {"v": text})
