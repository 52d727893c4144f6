"""Runs of LangChain, recorded and read back as `agentspec replay` reads them."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from engine_doubles import scripted_engine
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from pydantic import BaseModel

from agentspec import ChatAgentSpec
from agentspec.errors import ConfigError
from agentspec.integrations.langchain import record
from agentspec.replay.asks import asked_of
from agentspec.replay.live import Way, replay
from agentspec.replay.traces import read_traces

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"{city}: rain"


class Verdict(BaseModel):
    fine: bool


def reply(prompt: str) -> str:
    return "Take an umbrella." if "Oslo: rain" in prompt else CALL


def test_an_agents_run_is_replayed_turn_by_turn(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    with scripted_engine(reply) as engine:
        agent = create_agent(ChatAgentSpec(engine=engine), [weather])
        agent.invoke({"messages": [HumanMessage("What to take to Oslo?")]}, {"callbacks": [record(file)]})
        recording = read_traces([file])
        report = replay(engine, recording, Way(max_tokens=200))
    first, second = recording.turns
    assert [turn.called for turn in recording.turns] == [True, False]
    assert [message["role"] for message in second.messages] == ["user", "assistant", "tool"]
    assert second.messages[1] == first.answer
    assert second.answer == {"role": "assistant", "content": "Take an umbrella."}
    assert first.tools[0]["function"]["name"] == "weather"
    assert (first.model, first.approximate, second.approximate) == ("loaded engine", True, False)
    assert not recording.skipped
    assert [turn.identical for turn in report.turns] == [True, True]
    assert file.stat().st_mode & 0o777 == 0o600


def test_any_other_model_is_recorded_too(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    said = AIMessage("", tool_calls=[{"name": "Verdict", "args": {"fine": True}, "id": "1"}])
    model = FakeMessagesListChatModel(responses=[said, AIMessage("Yes."), AIMessage('{"fine": true}')])
    anthropics = {"name": "Verdict", "description": "d", "input_schema": Verdict.model_json_schema()}
    callbacks = {"callbacks": [record(file)]}
    model.bind(tools=[anthropics]).invoke("hi", callbacks)
    asyncio.run(model.ainvoke([HumanMessage([{"type": "text", "text": "hi"}])], callbacks))
    model.bind(format=Verdict.model_json_schema()).invoke("hi", callbacks)  # as ChatOllama has it
    called, plain, held = read_traces([file]).turns
    assert called.tools[0]["function"]["parameters"]["required"] == ["fine"]
    assert called.answer is not None
    assert called.answer["tool_calls"][0]["function"] == {"name": "Verdict", "arguments": '{"fine": true}'}
    assert (plain.messages[0]["content"], plain.tools) == ("hi", ())
    assert held.schema == Verdict.model_json_schema()


def test_what_else_was_asked_is_kept_for_the_replay(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    callbacks = {"callbacks": [record(file)]}
    with scripted_engine("xx") as engine:
        model = ChatAgentSpec(engine=engine, max_tokens=9)
        model.invoke("hi", callbacks, regex="x{2}", stop=["y"], prediction={"type": "content", "content": "xx"})
    other = FakeMessagesListChatModel(
        responses=[AIMessage("", tool_calls=[{"name": "weather", "args": {}, "id": "1"}])]
    )
    anthropics = {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}
    other.bind(tools=[weather], tool_choice=anthropics, max_tokens=0).invoke("hi", callbacks)
    ours, theirs = read_traces([file]).turns
    assert asked_of(ours) == {"regex": "x{2}", "prediction": "xx"}
    assert ours.params == {"max_tokens": 9, "stop": ["y"]}
    assert (theirs.options, theirs.params) == ({"tool_choice": "weather", "parallel_tool_calls": False}, {})


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ({"max_completion_tokens": 7, "stop_sequences": ["a"]}, {"max_tokens": 7, "stop": ["a"]}),
        ({"num_predict": 7}, {"max_tokens": 7}),
        ({"options": {"num_predict": 7, "stop": ["a"]}}, {"max_tokens": 7, "stop": ["a"]}),
        ({"num_predict": -1}, {}),
        ({"max_tokens": 7, "stop_sequences": [1]}, {"max_tokens": 7}),
    ],
)
def test_where_an_answer_had_to_end_has_many_names(tmp_path: Path, asked: dict[str, Any], kept: dict[str, Any]) -> None:
    model = FakeMessagesListChatModel(responses=[AIMessage("ok")])
    model.bind(**asked).invoke("hi", {"callbacks": [record(tmp_path / "trace.jsonl")]})
    assert read_traces([tmp_path / "trace.jsonl"]).turns[0].params == kept


def test_a_calls_own_stop_comes_before_the_models(tmp_path: Path) -> None:
    model = FakeMessagesListChatModel(responses=[AIMessage("ok")]).bind(stop_sequences=["model's"])
    metadata = {"ls_stop": ["call's"], "ls_max_tokens": 5, "max_tokens": 3}  # the last is the user's own
    model.invoke("hi", {"callbacks": [record(tmp_path / "trace.jsonl")], "metadata": metadata})
    assert read_traces([tmp_path / "trace.jsonl"]).turns[0].params == {"max_tokens": 5, "stop": ["call's"]}


SEARCH = {"type": "web_search_20250305", "name": "web_search"}


@pytest.mark.parametrize(
    ("asked", "warning"),
    [
        ({"prediction": 5}, 'prediction is not recorded: prediction must be a text, or {"type": "content", "cont'),
        ({"stop": [1]}, "stop is not recorded: stop must hold non-empty strings"),
        ({"tools": [weather, {"type": "web_search"}]}, "a tool of this form is not recorded: {'type': 'web_search'}"),
        ({"tools": [weather, SEARCH]}, "a tool of this form is not recorded: {'type': 'web_search_20250305'"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice is not recorded: tool_choice must be auto, any, required"),
        ({"tool_choice": {"function": None}}, "tool_choice of this form is not recorded"),
        ({"response_format": str}, "a response format of this form is not recorded: <class 'str'>"),
        ({"tools": 5}, "tools of this form are not recorded: 5"),
        ({"regex": 5}, "regex of this form is not recorded: 5"),
    ],
)
def test_what_can_not_be_recorded_is_warned_about_once_and_costs_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, asked: dict[str, Any], warning: str
) -> None:
    whole = {"tools": [weather], "tool_choice": "any", "max_tokens": 9} | asked
    model = FakeMessagesListChatModel(responses=[AIMessage("ok")]).bind(**whole)
    callbacks = {"callbacks": [record(tmp_path / "trace.jsonl")]}
    with caplog.at_level(logging.WARNING):
        model.invoke("hi", callbacks)
        model.invoke("hi", callbacks)
    assert [each.message.startswith(warning) for each in caplog.records] == [True], caplog.text
    recording = read_traces([tmp_path / "trace.jsonl"])
    turn = recording.turns[1]
    assert (turn.answer, turn.params) == ({"role": "assistant", "content": "ok"}, {"max_tokens": 9})
    assert [tool["function"]["name"] for tool in turn.tools] == ([] if asked.get("tools") == 5 else ["weather"])
    assert turn.options == ({} if asked.get("tools") == 5 or "tool_choice" in asked else {"tool_choice": "required"})


def test_half_a_character_is_recorded_as_it_is(tmp_path: Path) -> None:
    model = FakeMessagesListChatModel(responses=[AIMessage("\ud83d")])
    model.invoke("hi", {"callbacks": [record(tmp_path / "trace.jsonl")]})
    assert read_traces([tmp_path / "trace.jsonl"]).turns[0].answer == {"role": "assistant", "content": "\ud83d"}


def test_a_streamed_and_structured_answer_is_recorded_whole(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    with scripted_engine('{"fine": true}') as engine:
        model = ChatAgentSpec(engine=engine).with_structured_output(Verdict)
        list(model.stream("hi", {"callbacks": [record(file)], "metadata": {"thread_id": "t1"}}))
    (turn,) = read_traces([file]).turns
    assert (turn.trace_id, turn.answer) == ("t1", {"role": "assistant", "content": '{"fine": true}'})
    assert turn.schema is not None
    assert turn.schema["additionalProperties"] is False


def test_what_is_in_the_file_stays_and_a_torn_line_costs_no_other(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    with scripted_engine("ok") as engine:
        model = ChatAgentSpec(engine=engine)
        model.invoke("one", {"callbacks": [record(file)]})
        file.write_bytes(file.read_bytes() + b'{"trace_id": "to')
        model.invoke("two", {"callbacks": [record(file)]})
    recording = read_traces([file])
    assert [turn.messages[0]["content"] for turn in recording.turns] == ["one", "two"]
    assert [each.line for each in recording.skipped] == [2]


def test_where_nothing_can_be_recorded_is_told_first(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("[1]\n")
    with pytest.raises(ConfigError, match="holds something else than a trace"):
        record(tmp_path / "other.json")
    with pytest.raises(ConfigError, match="is no file"):
        record(tmp_path)
    with pytest.raises(ConfigError, match="can't be recorded to: No such file or directory"):
        record(tmp_path / "nowhere" / "trace.jsonl")


def test_what_goes_wrong_later_is_warned_about_once_and_fails_no_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "folder").mkdir()
    recorder = record(tmp_path / "folder" / "trace.jsonl")
    (tmp_path / "folder" / "trace.jsonl").unlink()
    (tmp_path / "folder").rmdir()
    with caplog.at_level(logging.WARNING), scripted_engine("xx") as engine:
        model = ChatAgentSpec(engine=engine, callbacks=[recorder])
        assert [model.invoke("hi").content, model.invoke("hi").content] == ["xx", "xx"]
    assert [record.message.partition(": ")[0].partition(" ")[2][:30] for record in caplog.records] == [
        "can't be written, answers are ",
    ]


def test_it_needs_no_torch() -> None:
    script = (
        "import sys\nsys.modules['torch'] = None\nfrom agentspec.integrations.langchain import record\nprint(record)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout[:16], done.stderr) == ("<function record", "")
