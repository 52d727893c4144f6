"""Schemas that hold themselves, explode, are malformed or ask for numbers that would be rounded: refused at once."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from toy_vocabulary import TV, accepts

from agentspec.errors import GrammarError
from agentspec.grammar.enforceable import check_tools
from agentspec.grammar.schema import schema_guide


def tree() -> dict[str, Any]:
    node: dict[str, Any] = {"type": "object"}
    node["properties"] = {"left": node, "right": node}
    return node


def doubled(times: int) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "string"}
    for _ in range(times):
        part = {"anyOf": [part, part]}
    return part


def keyed(count: int) -> dict[str, Any]:
    return {"oneOf": [{"type": "object", "required": [f"k{index}"]} for index in range(count)]}


BIG = 2**53 + 1

REFUSED: list[tuple[dict[str, Any], str]] = [
    (tree(), "the JSON schema contains itself: use $ref"),
    (doubled(30), "the JSON schema is too large once written out"),
    ({"not": {"const": "ab" * 200_000}}, "'not' at $: a text of more than 200 characters"),
    ({"if": {"const": "a" * 201}, "then": {}}, "'if' at $: a text of more than 200 characters"),
    (keyed(65), "'oneOf' at $: it has 65 alternatives, at most 64"),
    (keyed(1500), "'oneOf' at $: it has 1500 alternatives, at most 64"),
    ({"enum": [{"a": [BIG]}]}, "'enum' at $: numbers beyond 9,007,199,254,740,992 would be rounded"),
    ({"items": {"const": 1e20}}, "'const' at $.items: numbers beyond"),
    ({"type": "integer", "minimum": -BIG}, "'minimum' at $: numbers beyond"),
    ({"type": "number", "exclusiveMaximum": 10**400}, "'exclusiveMaximum' at $: numbers beyond"),
    ({"type": "integer", "multipleOf": 10**20}, "'multipleOf' at $: numbers beyond"),
    ({"type": "number", "exclusiveMinimum": 1, "maximum": 1.1}, "'exclusiveMinimum' at $: with a fraction"),
    ({"type": "number", "exclusiveMaximum": -1, "minimum": -1.1}, "'exclusiveMaximum' at $: with a fraction"),
    ({"type": "number", "exclusiveMinimum": 0, "allOf": [{"maximum": 0.5}]}, "'exclusiveMinimum' at $: with"),
    ({"type": "object", "required": [["a"]]}, "'required' at $: it must be a list of names, not [['a']]"),
    ({"type": [["string"]]}, "'type' at $: it must be"),
    ({"oneOf": [{"required": ["a", 1]}, {"required": ["b"]}]}, "'required' at $.oneOf[0]: it must be"),
    ({"not": {"type": 5}}, "'type' at $.not: it must be"),
    ({"type": "integer", "multipleOf": True}, "'multipleOf' at $: it must be a number above 0, not True"),
    ({"type": "integer", "multipleOf": -2}, "'multipleOf' at $: it must be a number above 0, not -2"),
    ({"type": "object", "propertyNames": {"pattern": ["a"]}}, "'pattern' at $.propertyNames: it must be a text"),
    ({"enum": [1], "not": {"enum": 5}}, "'enum' at $.not: it must be a list"),
    ({"not": {"required": [[1]]}}, "'required' at $.not: it must be"),
    ({"not": {"required": [1]}}, "'required' at $.not: it must be"),
    ({"allOf": 5, "not": {"type": "string"}}, "'allOf' at $: it must be a list of schemas, not 5"),
    ({"$ref": "#/prefixItems/²", "prefixItems": [{}]}, "'$ref' at $:"),
    ({"$ref": "#/title", "title": "x"}, "'$ref' at $: '#/title' is not a schema"),
    ({"type": "string", "maxLength": 10**12}, "'maxLength' at $: it is more than 4,294,967,295"),
]


@pytest.mark.parametrize(("schema", "words"), REFUSED, ids=[words[:40] for _, words in REFUSED])
def test_it_is_refused_in_one_line_also_as_a_tools_parameter(schema: dict[str, Any], words: str) -> None:
    parameters = {"type": "object", "properties": {"x": schema}}
    with pytest.raises(GrammarError) as caught:
        schema_guide(TV, schema)
    with pytest.raises(GrammarError, match="tool 't': its parameters can't be enforced: ") as of_tool:
        check_tools([{"type": "function", "function": {"name": "t", "parameters": parameters}}])
    assert words in str(caught.value)
    assert "\n" not in str(caught.value) + str(of_tool.value)


def test_an_exclusive_bound_is_held_to_or_refused() -> None:
    dice, bounds = random.Random(1), [-1.5, -1, -0.5, -0.1, 0, 0.05, 0.1, 0.5, 1, 1.1, 2, 2.5, 10, 12]
    held = 0
    for _ in range(400):
        low, high = sorted(dice.sample(bounds, 2))
        least = dice.choice(("minimum", "exclusiveMinimum"))
        most = dice.choice(("maximum", "exclusiveMaximum"))
        schema = {"type": "number", least: low, most: high}
        try:
            guide = schema_guide(TV, schema)
        except GrammarError:
            continue
        held += 1
        wrong = [text for text in texts(low) if accepts(guide, text) and least == "exclusiveMinimum"]
        wrong += [text for text in texts(high) if accepts(guide, text) and most == "exclusiveMaximum"]
        assert wrong == [], schema
    assert held > 100


def texts(number: float) -> list[str]:
    whole = [str(int(number)), f"{int(number)}.0"] if number == int(number) else []
    return [json.dumps(number), f"{number:.4f}", *whole, *(["-0", "-0.0"] if number == 0 else [])]


def test_a_large_number_of_alternatives_by_constants_is_enforced() -> None:
    guide = schema_guide(TV, {"oneOf": [{"const": f"c{index}"} for index in range(100)]})
    assert accepts(guide, '"c99"')
    assert not accepts(guide, '"c100"')
