"""Values between tags: of each schema just what fits may be written, and it is read back as what it was."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from format_doubles import chat, parse, scribble
from toy_vocabulary import EOS, walk

from agentspec.chat.formats.qwen3_coder import QWEN3_CODER
from agentspec.errors import GrammarError
from agentspec.grammar.tools import read_tools

TEXT, NUMBER = {"type": "string"}, {"type": "integer", "minimum": 10}
LIST = {"type": "array", "items": {"type": "integer"}}
NODE = {"$defs": {"kind": {"enum": ["a", "b"]}}, "properties": {"v": {"$ref": "#/$defs/kind"}}}


def parameters(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"v": schema}, "required": ["v"]}


def read(schema: dict[str, Any], written: str) -> tuple[bool, object]:
    """Whether `written` may be the value of `v`, and what it is read as."""
    tools = read_tools([{"type": "function", "function": {"name": "f", "parameters": schema}}])
    made, _ = chat(QWEN3_CODER)
    text = f"<tool_call>\n<function=f>\n<parameter=v>\n{written}\n</parameter>\n</function>\n</tool_call>"
    allowed = walk(made.guide(tools, "required"), [*text.encode(), EOS]) is not None
    calls = parse(QWEN3_CODER, [text], tools).tool_calls
    return allowed, json.loads(calls[0].arguments)["v"] if calls else None


@pytest.mark.parametrize(
    ("schema", "written", "allowed", "value"),
    [
        (TEXT, "3", True, "3"),
        (TEXT, "", True, ""),
        (TEXT, '\n {"a": "\\n"}\n', True, '\n {"a": "\\n"}\n'),
        (TEXT, "</param> </parameter", True, "</param> </parameter"),
        (TEXT, "a</parameter>b\n</parameter> \nc", True, "a</parameter>b\n</parameter> \nc"),
        (TEXT, "a\n</parameter>\nb", False, None),
        ({"type": "string", "maxLength": 3}, "abc", True, "abc"),
        ({"type": "string", "maxLength": 3}, "abcd", False, "abcd"),
        ({"type": "string", "minLength": 2, "maxLength": 900}, "a", False, "a"),
        ({"type": "string", "minLength": 2, "maxLength": 900}, "ab", True, "ab"),
        ({"type": "string", "minLength": 20, "maxLength": 20}, "a" * 20, True, "a" * 20),
        ({"type": "string", "minLength": 20, "maxLength": 20}, "a" * 21, False, "a" * 21),
        ({"type": "string", "minLength": 3}, "a\n</parameter>\n", False, None),
        ({"anyOf": [{"type": "string", "minLength": 1, "maxLength": 900}, LIST]}, '["a"]', False, ["a"]),
        ({"anyOf": [{"type": "string", "minLength": 1, "maxLength": 900}, LIST]}, "a", True, "a"),
        ({"enum": ["S", "M"]}, "M", True, "M"),
        ({"enum": ["S", "M"]}, "L", False, "L"),
        ({"enum": ["5", "6"]}, "5", True, "5"),
        ({"type": "integer"}, "3", True, 3),
        ({"type": "integer"}, "x", False, "x"),
        ({"type": "number"}, "3", True, 3),
        ({"type": "boolean"}, "True", False, True),
        ({"type": "boolean"}, "true", True, True),
        (LIST, "[1, 2]", True, [1, 2]),
        (LIST, '["a"]', False, ["a"]),
        ({"anyOf": [TEXT, {"type": "null"}]}, "null", True, None),
        ({"anyOf": [TEXT, {"type": "null"}]}, "nil", True, "nil"),
        ({"type": ["string", "integer"]}, "7", True, 7),
        ({"anyOf": [TEXT, NUMBER]}, "7", False, 7),
        ({"anyOf": [TEXT, NUMBER]}, "seven", True, "seven"),
        ({"anyOf": [TEXT, LIST]}, "[1]", True, [1]),
        ({"anyOf": [TEXT, LIST]}, '["a"]', False, ["a"]),
        ({"anyOf": [TEXT, LIST]}, "a [1]", True, "a [1]"),
        ({"anyOf": [{"enum": ["a"]}, {"type": "null"}]}, "null", True, None),
        ({"anyOf": [{"enum": ["a"]}, {"type": "null"}]}, "b", False, "b"),
        ({"type": ["string", "array"], "items": {"type": "null"}}, "[null]", True, [None]),
        ({}, "[1", False, "[1"),
        ({}, "free", True, "free"),
        ({"type": ["string", "number"]}, "NaN", True, "NaN"),
        ({"type": ["string", "number"]}, " 7", True, " 7"),
    ],
)
def test_a_value_is_held_to_its_schema_and_read_by_it(
    schema: object, written: str, allowed: bool, value: object
) -> None:
    found = read(parameters(schema), written)
    assert found[0] == allowed
    if value is not None or allowed:
        assert found[1] == value


def test_a_definition_is_found() -> None:
    assert read({"type": "object", **NODE}, "a") == (True, "a")
    assert read({"type": "object", **NODE}, "c") == (False, "c")


def test_optional_arguments_come_in_their_order_and_free_ones_last() -> None:
    schema = {"type": "object", "properties": {"a": TEXT, "b": LIST}, "required": ["b"], "additionalProperties": TEXT}
    tools = read_tools([{"type": "function", "function": {"name": "f", "parameters": schema}}])
    made, tokens = chat(QWEN3_CODER)
    guide, seen = made.guide(tools, "f"), set()
    for seed in range(40):
        text = scribble(guide, tokens, QWEN3_CODER, seed)
        calls = parse(QWEN3_CODER, [text], tools).tool_calls if text else ()
        for call in calls:
            arguments = json.loads(call.arguments)
            jsonschema.validate(arguments, schema)
            seen.add(tuple(name if name in "ab" else "+" for name in arguments)[:3])
    assert {("b",), ("a", "b")} <= seen


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (parameters({"type": "string", "pattern": "^a"}), "'pattern' at $.properties.v: "),
        (parameters({"anyOf": [TEXT, {"type": "string", "maxLength": 2}]}), "'anyOf' at $.properties.v: "),
        (parameters({"anyOf": [TEXT, {"enum": [1, 2]}]}), "'enum' at $.properties.v: "),
        (parameters({"allOf": [TEXT, TEXT]}), "'allOf' at $.properties.v: "),
        ({"type": "object", "properties": {"v": TEXT}, "minProperties": 1}, "'minProperties' at $: "),
        ({"type": "object", "properties": {"a>b": TEXT}}, "'a>b' at $.properties: "),
    ],
)
def test_what_cannot_be_written_one_by_one_is_refused_by_name(schema: dict[str, Any], words: str) -> None:
    tools = read_tools([{"type": "function", "function": {"name": "f", "parameters": schema}}])
    with pytest.raises(GrammarError) as caught:
        chat(QWEN3_CODER)[0].guide(tools)
    assert str(caught.value).startswith(f"tool 'f': its parameters can't be enforced: {words}")
    assert "tool_format='hermes'" in str(caught.value)
