"""What LangChain does with any chat model, done with ours."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from engine_doubles import ScriptedEngine, scripted_engine
from langchain_core.callbacks import AsyncCallbackHandler, get_usage_metadata_callback
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import ConfigurableField

from agentspec import ChatAgentSpec
from agentspec.chat.base import BrokenCallDelta, ToolCallDelta
from agentspec.errors import ConfigError
from agentspec.langchain.answers import Answer
from agentspec.langchain.messages import openai_messages
from agentspec.local.result import StreamEvent

CALL = '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>'
CLOCK = {"name": "clock", "description": "Tell the time.", "parameters": {"type": "object", "properties": {}}}


def test_n_answers_are_n_generations_each_with_noise_of_its_own() -> None:
    with scripted_engine("a") as engine:
        model = ChatAgentSpec(engine=engine, n=3, seed=5, temperature=8.0, max_tokens=6)
        texts = [found.text for found in model.generate([[HumanMessage("hi")]]).generations[0]]
        again = [found.text for found in model.generate([[HumanMessage("hi")]]).generations[0]]
        other = model.invoke("hi", seed=6, n=1).content
    assert texts == again
    assert len({*texts, other}) == 4


def test_a_field_is_configured_for_a_call() -> None:
    with scripted_engine("one\ntwo") as engine:
        model = ChatAgentSpec(engine=engine).configurable_fields(stop=ConfigurableField(id="stop"))
        assert model.invoke("hi").content == "one\ntwo"
        assert model.invoke("hi", {"configurable": {"stop": ["\n"]}}).content == "one"
        assert [chunk.content for chunk in model.stream("hi", {"configurable": {"stop": "n"}})] == ["o"]


async def test_usage_is_summed_by_model_however_the_answer_is_asked_for() -> None:
    with scripted_engine("four") as engine, get_usage_metadata_callback() as heard:
        model = ChatAgentSpec(engine=engine)
        model.invoke("hi")
        list(model.stream("hi"))
        await model.ainvoke("hi")
        async for _ in model.astream("hi"):
            pass
    found = heard.usage_metadata["loaded engine"]
    length = len("user: hi\nassistant:")
    assert (found["input_tokens"], found["output_tokens"], found["total_tokens"]) == (4 * length, 20, 4 * length + 20)
    assert found["input_token_details"] == {"cache_read": 3 * (length - 1)}


def test_content_blocks_of_version_1() -> None:
    with scripted_engine("<think>\nHm.\n</think>\n\nSure." + CALL) as engine:
        engine._asker._chat.__dict__["reasoning"] = engine._asker._chat.form.reasoning  # a model that was trained to
        model = ChatAgentSpec(engine=engine, output_version="v1").bind_tools([CLOCK])
        whole = model.invoke("hi")
        streamed = None
        for chunk in model.stream("hi"):
            streamed = chunk if streamed is None else streamed + chunk
        for message in (whole, streamed):
            assert [block["type"] for block in message.content] == ["reasoning", "text", "tool_call"]
            assert message.content_blocks == message.content
            assert (message.content[0]["reasoning"], message.text) == ("Hm.", "Sure.")
            # and back: each part of the answer once
            (wire,) = openai_messages([message])
            assert wire["content"] == [{"type": "text", "text": "Sure."}]
            assert wire["reasoning_content"] == "Hm."
            assert [call["function"]["name"] for call in wire["tool_calls"]] == ["clock"]


def test_events_of_version_3() -> None:
    with scripted_engine("Sure." + CALL) as engine:
        stream = ChatAgentSpec(engine=engine).bind_tools([CLOCK]).stream_events("hi", version="v3")
        kinds = [event["event"] for event in stream]
    assert (kinds[0], kinds[-1], kinds.count("content-block-start")) == ("message-start", "message-finish", 2)
    assert [block["type"] for block in stream.output.content_blocks] == ["text", "tool_call"]
    assert (stream.output.text, stream.output.tool_calls[0]["name"]) == ("Sure.", "clock")


def test_thoughts_of_other_providers_are_told_as_thoughts() -> None:
    for block in (
        {"type": "thinking", "thinking": "Hm.", "signature": "x"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "id": "1"},
    ):
        (wire,) = openai_messages([AIMessage([block, "Sure."])])
        assert (wire["content"], wire["reasoning_content"]) == ([{"type": "text", "text": "Sure."}], "Hm.")


def test_a_call_that_is_none_does_not_run_into_the_next_one() -> None:
    answer = Answer("m", lambda token: b"")
    deltas = (BrokenCallDelta(None, '{"name": 5}'), ToolCallDelta(0, "id", "clock"), ToolCallDelta(0, arguments="{}"))
    (chunk,) = answer.more(StreamEvent("", deltas, ()))
    assert [call["name"] for call in chunk.message.tool_calls] == ["clock"]
    assert [call["args"][:11] for call in chunk.message.invalid_tool_calls] == ['{"name": 5}']


def test_what_one_caller_was_answered_is_not_drafted_for_another() -> None:
    def accepted(answer: AIMessage) -> int:
        return answer.response_metadata["agentspec"]["accepted"].get("answers", 0)

    with scripted_engine("the quick brown fox jumps") as engine:
        model = ChatAgentSpec(engine=engine, caller="ann")
        assert accepted(model.invoke("one")) == 0
        assert accepted(model.invoke("two", caller="bob")) == 0
        assert accepted(model.invoke("three")) > 10


@pytest.mark.parametrize("given", ["text", "openai", "parts"])
def test_a_prediction_is_drafted(given: str) -> None:
    text = "the quick brown fox jumps"
    parts = [{"type": "text", "text": text[:9]}, {"type": "text", "text": text[9:]}]
    forms = {
        "text": text,
        "openai": {"type": "content", "content": text},
        "parts": {"type": "content", "content": parts},
    }
    with scripted_engine(text) as engine:
        model = ChatAgentSpec(engine=engine)
        answer = model.invoke("hi", prediction=forms[given])
        with pytest.raises(ConfigError, match="prediction must be a text"):
            model.invoke("hi", prediction={"type": "content"})
    assert answer.content == text
    assert answer.response_metadata["agentspec"]["accepted"]["prediction"] > 10


async def test_callbacks_hear_tokens_and_the_end_in_async_too() -> None:
    class Ear(AsyncCallbackHandler):
        def __init__(self) -> None:
            self.heard: list[str] = []

        async def on_llm_new_token(self, token: str, **kwargs: object) -> None:
            self.heard.append(token)

        async def on_llm_end(self, response: object, **kwargs: object) -> None:
            self.heard.append("END")

    with scripted_engine("Hi!") as engine:
        for ask in (ChatAgentSpec(engine=engine, streaming=True).ainvoke, _streamed(ChatAgentSpec(engine=engine))):
            ear = Ear()
            await ask("hi", {"callbacks": [ear]})
            assert ("".join(ear.heard), ear.heard[-1]) == ("Hi!END", "END")


def _streamed(model: ChatAgentSpec) -> object:
    async def ask(prompt: str, config: object) -> None:
        async for _ in model.astream(prompt, config):
            pass

    return ask


async def test_the_event_loop_goes_on_while_the_model_works() -> None:
    def slowly(prompt: str) -> str:
        time.sleep(0.02)
        return "0123456789"

    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    with scripted_engine(slowly) as engine:
        model = ChatAgentSpec(engine=engine, speculate=False)
        heart = asyncio.create_task(beat())
        started = time.monotonic()
        await model.ainvoke("hi")
        async for _ in model.astream("hi"):
            pass
        await model.abatch(["a", "b"])
        took = time.monotonic() - started
        heart.cancel()
    assert took > 0.5
    assert beats > took / 0.01 / 4


class Gate:
    """A reply whose every forward waits for a permit."""

    def __init__(self) -> None:
        self.permits = threading.Semaphore(0)

    def __call__(self, prompt: str) -> str:
        self.permits.acquire()
        return "x" * 500


@pytest.mark.parametrize("way", ["closed", "cancelled"])
async def test_an_astream_that_is_left_stops_the_engine_within_one_round(way: str) -> None:
    gate = Gate()
    with scripted_engine(gate) as engine:
        stream = ChatAgentSpec(engine=engine, speculate=False).astream("hi")
        gate.permits.release(2)
        assert (await anext(stream)).content == "x"
        assert (await anext(stream)).content == "x"
        await _until(lambda: engine.target.forwards == 3)  # the third one waits for its permit
        if way == "closed":
            await stream.aclose()
        else:
            waiting = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        gate.permits.release(100)
        await _until(lambda: _is_idle(engine))
        assert engine.target.forwards == 3


async def test_an_ainvoke_that_is_cancelled_stops_the_engine_within_one_round() -> None:
    gate = Gate()
    with scripted_engine(gate) as engine:
        asked = asyncio.create_task(ChatAgentSpec(engine=engine, speculate=False).ainvoke("hi"))
        gate.permits.release(2)
        await _until(lambda: engine.target.forwards == 3)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        gate.permits.release(100)
        await _until(lambda: _is_idle(engine))
        assert engine.target.forwards == 3


@pytest.mark.parametrize("streaming", [False, True])
def test_an_answer_without_text_is_a_message_with_usage(streaming: bool) -> None:
    with scripted_engine("") as engine:
        answer = ChatAgentSpec(engine=engine, streaming=streaming).invoke("hi")
    assert (answer.content, answer.response_metadata["finish_reason"]) == ("", "stop")
    assert answer.usage_metadata["output_tokens"] == 1


def test_a_stream_has_one_answer_and_says_so_first() -> None:
    with pytest.raises(ValueError, match="streaming gives one answer, not n=2"):
        ChatAgentSpec(n=2, streaming=True)


async def _until(condition: object) -> None:
    async with asyncio.timeout(5):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.005)


def _is_idle(engine: ScriptedEngine) -> bool:
    return engine._worker.idle
