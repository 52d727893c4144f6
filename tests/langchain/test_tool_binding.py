"""Tools and choices of them, as LangChain's users bind them."""

from __future__ import annotations

import pytest
from engine_doubles import scripted_engine
from pydantic import BaseModel
from typing_extensions import TypedDict

from agentspec import ChatAgentSpec

CLOCK = {"name": "clock", "description": "Tell the time.", "parameters": {"type": "object", "properties": {}}}


class Zone(TypedDict):
    """Name a zone."""

    name: str


class Place(BaseModel):
    city: str


class Trip(BaseModel):
    """Plan a trip."""

    to: Place


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


@pytest.mark.parametrize(("parallel", "count"), [(None, 2), (True, 2), (False, 1)])
def test_one_answer_calls_once_or_more_often(parallel: bool | None, count: int) -> None:
    with scripted_engine(call("clock", "{}") + "\n" + call("Zone", '{"name": "UTC"}')) as engine:
        model = ChatAgentSpec(engine=engine).bind_tools([CLOCK, Zone], parallel_tool_calls=parallel)
        answers = [model.invoke("hi"), sum(list(model.stream("hi"))[1:], start=next(model.stream("hi")))]
    for answer in answers:
        assert [(each["name"], each["args"]) for each in answer.tool_calls] == [
            ("clock", {}),
            ("Zone", {"name": "UTC"}),
        ][:count]
        assert len({each["id"] for each in answer.tool_calls}) == count
        assert answer.invalid_tool_calls == []


@pytest.mark.parametrize(
    ("strict", "arguments"),
    [(None, {"to": {"city": "Oslo", "more": 1}}), (True, {"to": {"city": "Oslo"}})],
)
def test_strict_arguments_have_the_declared_keys_only(strict: bool | None, arguments: dict) -> None:
    with scripted_engine(call("Trip", '{"to": {"city": "Oslo", "more": 1}}')) as engine:
        answer = ChatAgentSpec(engine=engine).bind_tools([Trip], strict=strict).invoke("hi")
    assert [each["args"] for each in answer.tool_calls] == [arguments]
