"""Structured output: what is asked for comes back, as the type that was asked for, or an error says why not."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from engine_doubles import scripted_engine
from fault_cases import ORDERS, UNENFORCEABLE, as_tool, strings
from langchain_core.exceptions import OutputParserException
from pydantic import BaseModel, create_model
from typing_extensions import TypedDict

from agentspec import ChatAgentSpec
from agentspec.errors import ConfigError


class Tag(BaseModel):
    name: str
    hot: bool | None = None


class Trip(BaseModel):
    """A trip."""

    city: str
    days: int = 1
    tags: list[Tag]


class Visit(TypedDict):
    """A visit."""

    city: str
    days: int


class Verdict(TypedDict):
    """A verdict."""

    fine: bool


VALUES = {"city": "Oslo", "days": 2, "tags": [{"name": "a", "hot": True}, {"name": "b", "hot": None}]}
TEXT = json.dumps(VALUES)
TRIP = Trip(city="Oslo", days=2, tags=[Tag(name="a", hot=True), Tag(name="b")])
METHODS = ["json_schema", "function_calling", "json_mode"]


def written(method: str, text: str, name: str = "Trip") -> str:
    call = f'<tool_call>\n{{"name": "{name}", "arguments": {text}}}\n</tool_call>'
    return call if method == "function_calling" else text


@pytest.mark.parametrize("method", METHODS)
async def test_a_class_gives_its_instances(method: Any) -> None:
    with scripted_engine(written(method, TEXT)) as engine:
        trips = ChatAgentSpec(engine=engine).with_structured_output(Trip, method=method)
        raw = ChatAgentSpec(engine=engine).with_structured_output(Trip, method=method, include_raw=True)
        assert trips.invoke("hi") == await trips.ainvoke("hi") == TRIP
        assert list(trips.stream("hi"))[-1] == TRIP
        found = raw.invoke("hi")
    assert (found["parsed"], found["parsing_error"]) == (TRIP, None)
    assert found["raw"].usage_metadata["output_tokens"] > 50


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("schema", [Visit, {"title": "Visit", **Trip.model_json_schema(), "required": []}])
def test_other_schemas_give_plain_values(method: Any, schema: Any) -> None:
    name, text = ("Visit", '{"city": "Oslo", "days": 2}') if schema is Visit else ("Trip", TEXT)
    with scripted_engine(written(method, text, name)) as engine:
        found = ChatAgentSpec(engine=engine).with_structured_output(schema, method=method).invoke("hi")
    assert found == json.loads(text)


@pytest.mark.parametrize("method", METHODS)
async def test_a_stream_gives_the_object_as_it_grows(method: Any) -> None:
    text = '{"city": "Trondheim", "days": 2}'
    with scripted_engine(written(method, text, "Visit")) as engine:
        model = ChatAgentSpec(engine=engine, speculate=False).with_structured_output(Visit, method=method)
        found = list(model.stream("hi"))
        assert [each async for each in model.astream("hi")] == found
    cities = [each.get("city", "") for each in found]
    assert found[-1] == {"city": "Trondheim", "days": 2}
    assert len(found) > 5
    assert all(later.startswith(earlier) for earlier, later in pairwise(cities))
    assert {city for city, each in zip(cities, found, strict=True) if "days" in each} == {"Trondheim"}


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_an_unwilling_model_is_held_to_the_schema(method: Any) -> None:
    with scripted_engine("No.") as engine:
        found = ChatAgentSpec(engine=engine).with_structured_output(Verdict, method=method).invoke("hi")
    assert found == {"fine": False}  # the lowest id that is allowed, where the model's pick is not


@pytest.mark.parametrize("method", METHODS)
def test_an_answer_that_was_cut_is_an_error_and_no_half_value(method: Any) -> None:
    with scripted_engine(written(method, TEXT)) as engine:
        model = ChatAgentSpec(engine=engine, max_tokens=len(written(method, TEXT)) - 25)
        with pytest.raises(OutputParserException, match="raise max_tokens"):
            model.with_structured_output(Trip, method=method).invoke("hi")
        with pytest.raises(OutputParserException, match="raise max_tokens"):
            list(model.with_structured_output(Trip.model_json_schema(), method=method).stream("hi"))
        found = model.with_structured_output(Trip, method=method, include_raw=True).invoke("hi")
    assert found["parsed"] is None
    assert "cut off" in str(found["parsing_error"])


def test_classes_take_no_other_keys_unless_told() -> None:
    text = '{"city": "Oslo", "days": 2, "tags": [], "more": 1}'
    with scripted_engine(text) as engine:
        model = ChatAgentSpec(engine=engine)
        closed = model.with_structured_output(Trip, include_raw=True).invoke("hi")["raw"].content
        opened = model.with_structured_output(Trip, include_raw=True, strict=False).invoke("hi")["raw"].content
    assert (closed, opened) == ('{"city": "Oslo", "days": 2, "tags": []}', text)


@pytest.mark.parametrize(("strict", "text"), [(True, '{"a": true}'), (False, '{"a": true, "b": 6}')])
def test_a_strict_response_format_takes_the_declared_keys_only(strict: bool, text: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
    given = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": strict}}
    with scripted_engine('{"a": true, "b": 6}') as engine:
        assert ChatAgentSpec(engine=engine).invoke("hi", response_format=given).content == text


def test_a_response_format_is_bound_as_openai_has_it() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    with scripted_engine('{"a": 5}') as engine:
        model = ChatAgentSpec(engine=engine)
        for given in (
            {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
            {"type": "json_object"},
            {"type": "text"},
        ):
            assert model.bind(response_format=given).invoke("hi").content == '{"a": 5}'
        assert model.invoke("hi", regex="[x-z]{2}").content == "xx"
        with pytest.raises(ConfigError, match="response_format must be"):
            model.invoke("hi", response_format={"type": "yaml"})
        with pytest.raises(ConfigError, match="not both"):
            model.invoke("hi", response_format={"type": "text"}, json_schema=schema)
        with pytest.raises(ConfigError, match="method must be one of"):
            model.with_structured_output(Trip, method="xml")  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="needs a schema"):
            model.with_structured_output(None)


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
@pytest.mark.parametrize("kind", ["dict", "class"])
def test_p13_keys_come_in_their_declared_order_in_either_of_two_requests(method: Any, kind: str) -> None:
    for names in ORDERS:
        document = json.dumps(dict.fromkeys(names, "v"))
        schema: Any = {"title": "Keys", "description": "d", **strings(*names)}
        if kind == "class":
            schema = create_model("Keys", **dict.fromkeys(names, (str, ...)))  # type: ignore[call-overload]
        with scripted_engine(written(method, document, "Keys")) as engine:
            model = ChatAgentSpec(engine=engine).with_structured_output(schema, method=method, include_raw=True)
            raw = model.invoke("hi")["raw"]
        found = json.loads(raw.content) if raw.content else raw.tool_calls[0]["args"]
        assert [*found.items()] == [(name, "v") for name in names]
        # A target that would rather begin with the last key is made to begin with the first.
        with scripted_engine(written(method, f'{{"{names[-1]}": "v", "', "Keys")) as engine:
            model = ChatAgentSpec(engine=engine, max_tokens=60).with_structured_output(
                schema, method=method, include_raw=True
            )
            raw = model.invoke("hi")["raw"]
        assert f'{{"{names[0]}": ' in (raw.content or raw.invalid_tool_calls[0]["args"])


@pytest.mark.parametrize(("schema", "words"), UNENFORCEABLE, ids=str)
def test_p15_what_cannot_be_enforced_is_a_value_error_when_it_is_bound(schema: dict[str, Any], words: str) -> None:
    model = ChatAgentSpec(model="a model that nobody has")
    inner = {"title": "Bad", "description": "d", "type": "object", "properties": {"x": schema}, "required": ["x"]}
    for bind, path in (
        (lambda: model.with_structured_output(schema), "$"),
        (lambda: model.with_structured_output(inner, method="function_calling"), "$.properties.x"),
        (lambda: model.bind_tools([as_tool("good", {}), as_tool("bad", schema)]), "$.properties.x"),
        (lambda: model.bind_tools([as_tool("bad", schema)], tool_choice="bad"), "$.properties.x"),
    ):
        with pytest.raises(ValueError, match="can't be enforced") as caught:
            bind()
        assert words.replace(" $", f" {path}") in str(caught.value)
    model.bind_tools([as_tool("good", {}), as_tool("bad", schema)], tool_choice="good")  # only that is held to
