"""What an answer is held to: one of the options, with its white space."""

import json
from typing import Any

import pytest
from engine_doubles import byte_asker
from fault_cases import ORDERS, UNENFORCEABLE, as_tool, strings
from pydantic import BaseModel, create_model

from agentspec import SamplingParams
from agentspec.errors import ConfigError, GrammarError
from agentspec.local.ask import Ask

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Count(BaseModel):
    n: int


def written(text: str, **options: Any) -> bool:
    """Whether an answer asked for with these options may be `text`."""
    (order, *_), _ = byte_asker().read(Ask("?", SamplingParams(), options))  # type: ignore[arg-type, typeddict-item]
    cursor = order.guide.start()
    for token in text.encode():
        if cursor is not None:
            cursor = cursor.advance(token)
    return cursor is not None and cursor.accepting


@pytest.mark.parametrize(
    "held_to", [{"output_type": Count}, {"output_type": json.dumps(SCHEMA)}, {"json_schema": SCHEMA}]
)
def test_a_document_has_fixed_white_space_unless_asked(held_to: dict[str, Any]) -> None:
    assert written('{"n": 1}', **held_to)
    assert not written('{\n  "n": 1\n}', **held_to)
    assert written('{\n  "n": 1\n}', **held_to, json_whitespace="bounded")


def test_a_type_without_fields_is_text() -> None:
    assert written("12", output_type=int)
    assert not written("a", output_type=int)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"output_type": int, "regex": "a"}, ConfigError, "one thing, not to output_type and regex"),
        ({"json_whitespace": "bounded"}, ConfigError, "json_whitespace goes with json_schema or output_type"),
        ({"json_schema": SCHEMA, "json_whitespace": "free"}, ConfigError, "must be fixed or bounded, not 'free'"),
        ({"output_type": set}, GrammarError, "output_type <class 'set'> can't be enforced"),
    ],
)
def test_what_cannot_be_asked_is_one_line(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        written("", **options)


@pytest.mark.parametrize("way", ["json_schema", "output_type", "class", "tool"])
def test_p13_keys_come_in_their_declared_order_in_either_of_two_requests(way: str) -> None:
    frame, found = "{}", []
    documents = [json.dumps(dict.fromkeys(names, "")) for names in ORDERS]
    for names in ORDERS:
        options: dict[str, Any] = {way: strings(*names)}
        if way == "class":
            options = {"output_type": create_model("Keys", **dict.fromkeys(names, (str, ...)))}  # type: ignore[call-overload]
        elif way == "tool":
            tool = {"type": "function", "function": {"name": "keys", "parameters": strings(*names)}}
            frame = '<tool_call>\n{{"name": "keys", "arguments": {}}}\n</tool_call>'
            options = {"tools": [tool], "tool_choice": "required"}
        found.append([written(frame.format(document), **options) for document in documents])
    assert found == [[True, False], [False, True]]


@pytest.mark.parametrize(("schema", "words"), UNENFORCEABLE, ids=str)
def test_p15_what_cannot_be_enforced_is_no_order(schema: dict[str, Any], words: str) -> None:
    ways: list[dict[str, Any]] = [{"json_schema": schema}, {"output_type": schema}, {"output_type": json.dumps(schema)}]
    for options in ways:
        with pytest.raises(GrammarError) as caught:
            written("", **options)
        assert words in str(caught.value)
    for choice in ("auto", "required", "bad"):
        with pytest.raises(GrammarError) as caught:
            written("", tools=[as_tool("good", {"type": "null"}), as_tool("bad", schema)], tool_choice=choice)
        assert str(caught.value).startswith("tool 'bad': its parameters can't be enforced: ")
        assert words.replace(" $", " $.properties.x") in str(caught.value)
