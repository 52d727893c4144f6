"""The chat model on a scripted engine: however an answer is asked for, it is the same message."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time

import pytest
from engine_doubles import ScriptedEngine, scripted_engine
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel, ValidationError

from agentspec import ChatAgentSpec
from agentspec.errors import ConfigError, EngineError, PromptError
from agentspec.langchain.messages import openai_messages

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Os}\\"lo", "day": {"n": 1}}}\n</tool_call>'
ARGS = {"city": 'Os}"lo', "day": {"n": 1}}


class Day(BaseModel):
    n: int


def weather(city: str, day: Day) -> str:
    """Tell the weather."""
    return f"{city}: rain"


class Trip(BaseModel):
    """Plan a trip."""

    city: str
    days: int = 1


CLOCK = {"name": "clock", "description": "Tell the time.", "parameters": {"type": "object", "properties": {}}}


def added(chunks: list[AIMessageChunk]) -> AIMessageChunk:
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    return total


def told(message: AIMessage) -> dict:
    """What has to be equal however the answer was asked for: all but ids, times and what was cached."""
    metadata = message.response_metadata
    usage = message.usage_metadata or {}
    return {
        "content": message.content,
        "calls": [(call["name"], call["args"]) for call in message.tool_calls],
        "usage": [usage[key] for key in ("input_tokens", "output_tokens", "total_tokens")],
        "metadata": [metadata[key] for key in ("finish_reason", "model_name", "model_provider")],
        "stats": [metadata["agentspec"][key] for key in ("tokens", "seed")],
    }


async def test_a_call_is_the_same_invoked_streamed_and_awaited() -> None:
    with scripted_engine("Sure." + CALL) as engine:
        model = ChatAgentSpec(engine=engine, seed=7).bind_tools([weather])
        whole = model.invoke("hi")
        streamed = list(model.stream("hi"))
        awaited = await model.ainvoke("hi")
        later = [chunk async for chunk in model.astream("hi")]
    assert whole.content == "Sure."
    assert [(call["name"], call["args"]) for call in whole.tool_calls] == [("weather", ARGS)]
    assert whole.response_metadata["finish_reason"] == "tool_calls"
    assert told(added(streamed)) == told(awaited) == told(added(later)) == told(whole)


def test_usage_finish_and_statistics_are_on_the_last_chunk_alone() -> None:
    with scripted_engine("A text of thirty characters. OK") as engine:
        chunks = list(ChatAgentSpec(engine=engine).bind_tools([weather]).stream("0123456789"))
    assert len(chunks) > 5
    assert [bool(chunk.usage_metadata) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert [bool(chunk.response_metadata) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    usage = added(chunks).usage_metadata
    assert usage is not None
    assert usage["output_tokens"] == len("A text of thirty characters. OK") + 1
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert added(chunks).response_metadata["agentspec"]["tokens"] == usage["output_tokens"]


def test_a_call_that_was_cut_is_invalid_whole_or_streamed() -> None:
    # LangChain would close the brackets of half a call and hand it to an agent as a whole one.
    with scripted_engine(CALL) as engine:
        model = ChatAgentSpec(engine=engine).bind_tools([weather])
        for length in range(1, len(CALL) + 1):
            whole = model.invoke("hi", max_tokens=length)
            streamed = added(list(model.stream("hi", max_tokens=length)))
            complete = length >= CALL.index("}}}") + 3
            assert [call["args"] for call in whole.tool_calls] == ([ARGS] if complete else []), length
            assert [call["args"] for call in streamed.tool_calls] == ([ARGS] if complete else []), length
            assert len(whole.invalid_tool_calls) == len(streamed.invalid_tool_calls)
            assert whole.response_metadata["finish_reason"] == streamed.response_metadata["finish_reason"] == "length"
        cut = model.invoke("hi", max_tokens=CALL.index("lo")).invalid_tool_calls
    assert [(call["name"], call["args"]) for call in cut] == [("weather", '{"city": "Os}\\"')]


async def test_stop_strings_of_the_model_and_of_the_call() -> None:
    with scripted_engine("one\ntwo;three") as engine:
        model = ChatAgentSpec(engine=engine, stop=["\n"])
        assert model.invoke("hi").content == "one"
        assert model.invoke("hi", stop=[";"]).content == "one\ntwo"
        assert (await model.bind(stop=";").ainvoke("hi")).content == "one\ntwo"
        assert added(list(model.stream("hi"))).content == "one"
        assert model.invoke("hi").response_metadata["finish_reason"] == "stop"


def test_a_batch_keeps_its_order() -> None:
    with scripted_engine(lambda prompt: prompt.split("user: ")[1][:3].upper()) as engine:
        answers = ChatAgentSpec(engine=engine).batch(["abc", "def", "ghi"])
    assert [answer.content for answer in answers] == ["ABC", "DEF", "GHI"]


def test_tools_of_every_kind_are_in_the_prompt() -> None:
    with scripted_engine("ok") as engine:
        ChatAgentSpec(engine=engine).bind_tools([weather, Trip, CLOCK]).invoke("hi")
        for text in ("weather", "Tell the weather.", "city", "Trip", "Plan a trip.", "days", "clock", "Tell the time."):
            assert f'"{text}"' in engine.prompts[-1]
        ChatAgentSpec(engine=engine).bind_tools([weather], tool_choice="none").invoke("hi")
        assert "weather" not in engine.prompts[-1]


@pytest.mark.parametrize(
    "choice", ["any", "required", True, "clock", {"type": "function", "function": {"name": "clock"}}]
)
def test_a_choice_makes_the_model_call(choice: object) -> None:
    with scripted_engine("I'd rather not.") as engine:
        answer = ChatAgentSpec(engine=engine).bind_tools([CLOCK], tool_choice=choice).invoke("hi")  # type: ignore[arg-type]
    assert [(call["name"], call["args"]) for call in answer.tool_calls] == [("clock", {})]
    assert answer.content == ""


@pytest.mark.parametrize("choice", ["auto", "none", None, False])
def test_a_choice_leaves_it_to_the_model(choice: str | bool | None) -> None:
    with scripted_engine("I'd rather not.") as engine:
        answer = ChatAgentSpec(engine=engine).bind_tools([CLOCK], tool_choice=choice).invoke("hi")
    assert answer.content == "I'd rather not."


def test_a_conversation_with_calls_and_results_is_in_the_prompt() -> None:
    answer = AIMessage(
        [{"type": "text", "text": "Let me "}, {"type": "text", "text": "see."}, {"type": "tool_call", "name": "clock"}],
        tool_calls=[{"name": "clock", "args": {"zone": "é"}, "id": "1"}],
        invalid_tool_calls=[{"name": "clock", "args": '{"zo', "id": "2", "error": None, "type": "invalid_tool_call"}],
    )
    messages = [SystemMessage("Be brief."), HumanMessage("Time?"), answer, ToolMessage("noon", tool_call_id="1")]
    with scripted_engine("It is noon.") as engine:
        assert ChatAgentSpec(engine=engine).invoke(messages).content == "It is noon."
    assert engine.prompts == [
        "system: Be brief.\nuser: Time?\nassistant: Let me see.\n"
        '<tool_call>\n{"name": "clock", "arguments": {"zone": "é"}}\n</tool_call>\n'
        "user: <tool_response>\nnoon\n</tool_response>\nassistant:"
    ]


def test_an_agents_two_turns() -> None:
    def reply(prompt: str) -> str:
        return "Take an umbrella." if "Oslo: rain" in prompt else CALL.replace('Os}\\"lo', "Oslo")

    with scripted_engine(reply) as engine:
        model = ChatAgentSpec(engine=engine).bind_tools([tool(weather)])
        messages: list[BaseMessage] = [HumanMessage("What to take to Oslo?")]
        messages.append(model.invoke(messages))
        messages += [tool(weather).invoke(call) for call in messages[-1].tool_calls]  # type: ignore[attr-defined]
        assert model.invoke(messages).content == "Take an umbrella."


def test_what_cannot_be_honoured_is_refused_by_name() -> None:
    with scripted_engine("ok") as engine:
        model = ChatAgentSpec(engine=engine)
        with pytest.raises(ConfigError, match="a call takes no 'reasoning_effort'"):
            model.invoke("hi", reasoning_effort="high")
        with pytest.raises(ConfigError, match=r"top_p must be above 0 and at most 1, not 2"):
            model.invoke("hi", top_p=2)
        with pytest.raises(ConfigError, match="model='other' can't be used"):
            model.invoke("hi", model="other")
        with pytest.raises(ConfigError, match=r"one of the tools \(clock\), not 'time'"):
            model.bind_tools([CLOCK], tool_choice="time")
        with pytest.raises(PromptError, match=r"messages\[0\]\.content\[0\]: only text parts can be read"):
            model.invoke([HumanMessage([{"type": "image_url", "image_url": {"url": "data:,"}}])])
        with pytest.raises(ValidationError, match="leave out model"):
            ChatAgentSpec(engine=engine, model="m")
        assert engine.target.forwards == 0
    with pytest.raises(ConfigError, match=r"^ChatAgentSpec has no field 'base_url'; there are: model, draft"):
        ChatAgentSpec(base_url="http://localhost")
    with pytest.raises(ValidationError, match=r"temperature must be in 0\.\.100, not -1"):
        ChatAgentSpec(temperature=-1)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("max_token", "max_tokens"), ("max_completion_tokens", "max_tokens"), ("temprature", "temperature")],
)
def test_a_misspelled_field_is_told_in_one_line_with_the_right_name(wrong: str, right: str) -> None:
    with pytest.raises(ValueError, match=f"^ChatAgentSpec has no field '{wrong}'; did you mean {right}\\?$"):
        ChatAgentSpec(**{wrong: 1})


async def test_a_call_that_takes_too_long_is_cancelled() -> None:
    def slowly(prompt: str) -> str:
        time.sleep(0.01)
        return "x" * 3000

    with scripted_engine(slowly) as engine:
        model = ChatAgentSpec(engine=engine, timeout=0.1, speculate=False)
        for ask in (lambda: model.invoke("hi"), lambda: list(model.stream("hi"))):
            with pytest.raises(EngineError, match=r"within timeout=0\.1 seconds"):
                ask()
        with pytest.raises(EngineError, match="raise timeout"):
            await model.ainvoke("hi")
        assert_stopped(engine)


async def test_a_stream_that_is_left_is_cancelled() -> None:
    with scripted_engine("x" * 3000) as engine:
        model = ChatAgentSpec(engine=engine, speculate=False)
        stream = model.stream("hi")
        assert next(stream).content == "x"
        stream.close()  # type: ignore[attr-defined]
        assert_stopped(engine)
        later = model.astream("hi")
        assert (await anext(later)).content == "x"
        await later.aclose()  # type: ignore[attr-defined]
        assert_stopped(engine)


def assert_stopped(engine: ScriptedEngine) -> None:
    time.sleep(0.1)
    forwards = engine.target.forwards
    time.sleep(0.1)
    assert engine.target.forwards == forwards


def test_callbacks_hear_each_token() -> None:
    class Ear(BaseCallbackHandler):
        heard = ""

        def on_llm_new_token(self, token: str, **kwargs: object) -> None:
            self.heard += token

    with scripted_engine("Hello.") as engine:
        for streaming, heard in ((True, "Hello."), (False, "")):
            ear = Ear()
            answer = ChatAgentSpec(engine=engine, streaming=streaming).invoke("hi", {"callbacks": [ear]})
            assert (answer.content, ear.heard) == ("Hello.", heard)


def test_log_probabilities_are_given_when_asked_for() -> None:
    with scripted_engine("Hi") as engine:
        model = ChatAgentSpec(engine=engine)
        assert "logprobs" not in model.invoke("hi").response_metadata
        content = model.invoke("hi", logprobs=2).response_metadata["logprobs"]["content"]
        streamed = added(list(model.stream("hi", logprobs=True))).response_metadata["logprobs"]["content"]
    assert [each["token_id"] for each in content] == [*b"Hi", 256]
    assert [each["token"] for each in content] == ["H", "i", "<|eos|>"]
    assert content[0]["top_logprobs"][0]["bytes"] == content[0]["bytes"] == [72]
    assert [len(each["top_logprobs"]) for each in content] == [2, 2, 2]
    assert content[0]["logprob"] == content[0]["top_logprobs"][0]["logprob"] < 0
    assert [each["logprob"] for each in streamed] == [each["logprob"] for each in content]


def test_tokens_are_counted_by_the_models_own_tokenizer() -> None:
    with scripted_engine("ok") as engine:
        model = ChatAgentSpec(engine=engine)
        assert model.get_num_tokens("Grüße") == 7
        assert model.get_num_tokens_from_messages([HumanMessage("hi")]) == len("user: hi\nassistant:")
        asked = model.bind_tools([weather]).invoke("hi").usage_metadata
        assert model.get_num_tokens_from_messages([HumanMessage("hi")], [weather]) == asked["input_tokens"] > 300
        assert model.get_token_ids("Hü") == [72, 195, 188]
        assert ChatAgentSpec(engine=engine, custom_get_token_ids=lambda text: [7]).get_num_tokens("Hü") == 1


def test_a_pickle_holds_settings_and_no_weights() -> None:
    model = ChatAgentSpec(model="m", stop=["x"], max_tokens=3)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.asdict() == model.asdict()
    assert copy.asdict()["stop"] == ["x"]
    with scripted_engine("ok") as engine, pytest.raises(ConfigError, match="can't be pickled"):
        pickle.dumps(ChatAgentSpec(engine=engine))


def test_traces_show_the_model_of_the_call() -> None:
    params = ChatAgentSpec(stop="x", max_tokens=9)._get_ls_params(temperature=0.5)
    assert (params["ls_provider"], params["ls_model_name"], params["ls_stop"]) == ("agentspec", "smollm2-135m", ["x"])
    assert (params["ls_max_tokens"], params["ls_temperature"]) == (9, 0.5)


def test_making_one_loads_no_torch() -> None:
    script = "import sys, agentspec; agentspec.ChatAgentSpec(model='m').bind_tools([]); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"


def test_thoughts_are_kept_apart_and_told_to_the_next_turn() -> None:
    with scripted_engine("<think>\nHm.\n</think>\n\nSure." + CALL) as engine:
        engine._asker._chat.__dict__["reasoning"] = engine._asker._chat.form.reasoning  # a model that was trained to
        model = ChatAgentSpec(engine=engine).bind_tools([weather])
        whole, streamed = model.invoke("hi"), added(list(model.stream("hi")))
    for message in (whole, streamed):
        assert (message.content, message.additional_kwargs) == ("Sure.", {"reasoning_content": "Hm."})
        assert [call["args"] for call in message.tool_calls] == [ARGS]
    assert openai_messages([whole])[0]["reasoning_content"] == "Hm."
