"""Structured output: what is asked for comes back, as the type that was asked for, or an error says why not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from engine_doubles import scripted_engine
from langchain_core.exceptions import OutputParserException
from pydantic import BaseModel
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
