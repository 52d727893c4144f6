"""What is bound to a chat model stays bound, whatever is asked of it next."""

from __future__ import annotations

from typing import Any

import pytest
from engine_doubles import ScriptedEngine, scripted_engine
from langchain_core.callbacks import get_usage_metadata_callback
from langchain_core.exceptions import OutputParserException
from langchain_core.load import dumps, loads
from langchain_core.runnables import RunnableBinding
from pydantic import BaseModel

from agentspec import ChatAgentSpec
from agentspec.errors import ConfigError, GrammarError

CALL = '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>'


class Verdict(BaseModel):
    """A verdict."""

    fine: bool


def clock() -> str:
    """Tell the time."""
    return "noon"


def ways(engine: ScriptedEngine, **options: Any) -> list[Any]:
    """The two ways to ask for a verdict beside a tool; LangChain's own binding would drop the tool in the first."""
    model = ChatAgentSpec(engine=engine)
    return [
        model.bind_tools([clock]).with_structured_output(Verdict, **options),
        model.with_structured_output(Verdict, tools=[clock], **options),
    ]


async def test_an_answer_is_a_call_of_bound_tools_or_a_value() -> None:
    with scripted_engine(CALL) as engine:
        for model in ways(engine, include_raw=True):
            for found in (model.invoke("hi"), await model.ainvoke("hi")):
                assert [call["name"] for call in found["raw"].tool_calls] == ["clock"]
                assert (found["parsed"], found["parsing_error"]) == (None, None)
        engine.reply = lambda prompt: '{"fine": true}' if '"clock"' in prompt else "the tool is not in the prompt"
        for model in ways(engine, include_raw=True):
            assert model.invoke("hi")["parsed"] == Verdict(fine=True)


def test_a_call_is_an_error_where_nobody_would_see_it() -> None:
    with scripted_engine(CALL) as engine:
        for model in ways(engine):
            for ask in (model.invoke, lambda prompt, model=model: list(model.stream(prompt))):
                with pytest.raises(OutputParserException, match="the answer calls clock: read its calls with include_"):
                    ask("hi")


def test_what_leaves_no_choice_is_refused_when_it_is_bound() -> None:
    model = ChatAgentSpec(model="a model that nobody has")
    refused = {"type": "object", "properties": {"x": {"type": "string", "pattern": "(?=a)b"}}, "required": ["x"]}
    with pytest.raises(ConfigError, match="leaves no choice"):
        model.bind_tools([clock], tool_choice="any").with_structured_output(Verdict)
    with pytest.raises(ConfigError, match="leaves no choice"):
        model.with_structured_output(Verdict, tools=[clock], method="function_calling")
    with pytest.raises(ConfigError, match="to the schema or to regex"):
        model.bind(regex="x").with_structured_output(Verdict)
    with pytest.raises(GrammarError, match="can't be enforced"):
        model.with_structured_output(Verdict, tools=[{"name": "t", "description": "d", "parameters": refused}])


def test_stop_strings_and_callbacks_stay_with_tools_and_schemas() -> None:
    with scripted_engine("one;two") as engine, get_usage_metadata_callback() as heard:
        bound = ChatAgentSpec(engine=engine).bind(stop=[";"]).with_config(tags=["mine"])
        with_tools: Any = bound.bind_tools([clock])
        assert with_tools.invoke("hi").content == "one"
        assert (with_tools.config["tags"], isinstance(with_tools, RunnableBinding)) == (["mine"], True)
        engine.reply = lambda prompt: '{"fine": true}'
        cut = bound.bind(stop=["}"]).with_structured_output(Verdict, include_raw=True).invoke("hi")
        assert cut["raw"].content == '{"fine": true'
    assert heard.usage_metadata["loaded engine"]["output_tokens"] > 4


@pytest.mark.filterwarnings("ignore:The function `loads` is in beta")
def test_a_bound_model_is_dumped_as_langchains_own_binding() -> None:
    dumped = dumps(ChatAgentSpec(model="m").bind(stop=["x"]))
    again = loads(dumped, allowed_objects=[RunnableBinding, ChatAgentSpec], valid_namespaces=["agentspec"])
    assert (again.kwargs, again.bound.model) == ({"stop": ["x"]}, "m")


@pytest.mark.parametrize("choice", ["auto", "any", "clock", "none"])
@pytest.mark.parametrize("calls", [0, 1, 2])
def test_p19_the_finish_reason_is_tool_calls_where_there_are_some(choice: str, calls: int) -> None:
    with scripted_engine("\n".join([CALL] * calls) or "No.") as engine:
        model = ChatAgentSpec(engine=engine, max_tokens=200).bind_tools([clock], tool_choice=choice)
        streamed = None
        for chunk in model.stream("hi"):
            streamed = chunk if streamed is None else streamed + chunk
        for answer in (model.invoke("hi"), streamed):
            expected = {"auto": calls, "any": max(1, calls), "clock": 1, "none": 0}[choice]  # one that is named is one
            assert len(answer.tool_calls) == expected
            assert answer.response_metadata["finish_reason"] == ("tool_calls" if expected else "stop")
