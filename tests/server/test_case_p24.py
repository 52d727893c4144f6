"""Public fault case P24: every field of a chat completion is honoured, or refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chat_requests import CALLED, CHAT, HI, ONE, TOOLS, TWO, ask, called

LEFT_ALONE = {
    "store": True,
    "metadata": {"a": "b"},
    "reasoning_effort": "low",
    "service_tier": "auto",
    "prompt_cache_key": "k",
    "prompt_cache_options": {"mode": "implicit"},
    "prompt_cache_retention": "24h",
    "safety_identifier": "s",
    "verbosity": "low",
    "unknown": {"a": [1]},
}
PREDICTED = "abcd" * 20


def text(answer: dict[str, Any]) -> str:
    return answer["choices"][0]["message"]["content"]


@pytest.mark.parametrize(
    ("fields", "written"),
    [
        ({"max_completion_tokens": 3}, "abc"),
        ({"max_tokens": 5, "max_completion_tokens": 3}, "abc"),
        ({"max_tokens": 1_000_000}, "abcdef"),
        ({"max_tokens": None, "stop": None, "tools": None, "n": None, "logit_bias": None}, "abcdef"),
        ({"tools": []}, "abcdef"),
        ({"tool_choice": "none"}, "abcdef"),
        ({"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}, "abcdef"),
        ({"response_format": {"type": "text"}}, "abcdef"),
        ({"stop": "cd"}, "ab"),
        ({"stop": ["x", "ef", "d"]}, "abc"),
        ({"stop": []}, "abcdef"),
        ({"stop_token_ids": [99]}, "ab"),
        ({"min_tokens": 5, "max_tokens": 6, "stop": "a"}, "abcdef"),
        ({"bad_words": ["cd"]}, "abc\0"),
        ({"logit_bias": {"97": -100}}, "\0"),
        ({"logit_bias": {"120": 50}, "max_tokens": 2}, "xx"),
        ({"logit_bias": {"120": 9.5}, "frequency_penalty": -1, "presence_penalty": -1, "max_tokens": 2}, "ab"),
        ({"seed": 7, "temperature": 0}, "abcdef"),
        ({"temperature": 100, "top_k": 1}, "abcdef"),
        ({"temperature": 100, "top_p": 0.001}, "abcdef"),
        ({"temperature": 100, "min_p": 0.99}, "abcdef"),
        ({"regex": "abx"}, "abx"),
        ({"grammar": 'start: "ab" /[xy]/', "logit_bias": {"121": 1}}, "aby"),
        ({"speculate": False, "user": "ann", "modalities": ["text"], "stream_options": None}, "abcdef"),
        ({"audio": None, "functions": None, "function_call": None, "web_search_options": None}, "abcdef"),
        (LEFT_ALONE, "abcdef"),
    ],
    ids=lambda value: ",".join(value)[:40] if isinstance(value, dict) else "",
)
def test_a_field_is_honoured(scripted, fields, written):
    assert text(ask(scripted, "abcdef", **fields)) == written


def test_penalties_reach_the_sampler(scripted):
    assert text(ask(scripted, "aaaa", frequency_penalty=2, logit_bias={"98": 7})) == "aab"
    assert text(ask(scripted, "aaaa", repetition_penalty=2.0, logit_bias={"98": 6})) == "b"  # of the prompt too


@pytest.mark.parametrize("stream", [False, True])
def test_without_tools_to_call_none_is_called_nor_spoken_of(scripted, stream):
    scripted.engine.prompts.clear()
    answer = ask(scripted, ONE, tools=TOOLS, tool_choice="none", max_tokens=12)
    assert called(answer) == []
    assert "<tool_call>" not in text(answer)
    assert "get_weather" not in scripted.engine.prompts[0]


def test_one_call_at_a_time_is_one_call(scripted):
    answer = ask(scripted, TWO, tools=TOOLS, tool_choice="required", parallel_tool_calls=False)
    assert called(answer) == CALLED[:1]


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_allowed_tools_are_the_only_ones(scripted, mode):
    named = {"type": "function", "function": {"name": "get_time"}}
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [named]}}
    reply = '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
    assert called(ask(scripted, reply, tools=TOOLS, tool_choice=choice)) == CALLED[1:]
    assert "get_weather" not in scripted.engine.prompts[-1]


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}},
        {"json_schema": {"type": "object"}},
    ],
    ids=str,
)
def test_json_is_json(scripted, fields):
    assert json.loads(text(ask(scripted, '{"a": [1, {}]}', **fields))) == {"a": [1, {}]}
    assert text(ask(scripted, "Sure!", max_tokens=1, **fields)) == "{"


def test_beside_tools_a_format_holds_what_is_no_call(scripted):
    fields = {
        "tools": TOOLS,
        "response_format": {"type": "json_schema", "json_schema": {"schema": {"const": {"a": 1}}}},
    }
    assert called(ask(scripted, ONE, **fields)) == CALLED[:1]
    assert text(ask(scripted, '{"a": 1}', **fields)) == '{"a": 1}'
    assert text(ask(scripted, "Sure!", max_tokens=8, **fields))[0] in "{<"
    assert called(ask(scripted, ONE, tool_choice="required", **fields)) == CALLED[:1]
    assert text(ask(scripted, '{"a": 1}', tool_choice="none", **fields)) == '{"a": 1}'


def test_n_answers_come_whole_and_streamed(scripted):
    scripted.engine.reply = lambda prompt: "ab"
    answer = scripted.post(CHAT, {"messages": HI, "n": 2}).json()
    assert [(choice["index"], choice["message"]["content"]) for choice in answer["choices"]] == [(0, "ab"), (1, "ab")]
    assert answer["usage"]["completion_tokens"] == 6
    written, ends = {0: "", 1: ""}, []
    for chunk in scripted.events(CHAT, {"messages": HI, "n": 2}):
        (choice,) = chunk["choices"]
        written[choice["index"]] += choice["delta"].get("content") or ""
        ends += [choice["index"]] if choice.get("finish_reason") == "stop" else []
    assert (written, sorted(ends)) == ({0: "ab", 1: "ab"}, [0, 1])


def test_a_prediction_changes_the_speed_alone(scripted):
    with_it = ask(scripted, PREDICTED, prediction={"type": "content", "content": [{"type": "text", "text": PREDICTED}]})
    without = ask(scripted, PREDICTED, speculate=False)
    assert text(with_it) == text(without) == PREDICTED
    details = [each["usage"]["completion_tokens_details"] for each in (with_it, without)]
    assert [each["accepted_prediction_tokens"] for each in details] == [details[0]["accepted_prediction_tokens"], 0]
    assert details[0]["accepted_prediction_tokens"] > 40


def test_log_probabilities_are_told_of_each_token(scripted):
    scripted.engine.reply = lambda prompt: "\u00e9"
    fields = {"messages": HI, "logprobs": True, "top_logprobs": 2}
    (choice,) = scripted.post(CHAT, fields).json()["choices"]
    content = choice["logprobs"]["content"]
    assert [each["bytes"] for each in content[:2]] == [[0xC3], [0xA9]]
    assert all(len(each["top_logprobs"]) == 2 and each["logprob"] <= 0 for each in content)
    chunks = [chunk["choices"][0].get("logprobs") for chunk in scripted.events(CHAT, fields)]
    assert [each for chunk in chunks if chunk for each in chunk["content"]] == content


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_completion_tokens": 0}, "max_completion_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"temperature": -1}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"n": 0}, "n"),
        ({"n": 17}, "n"),
        ({"stop": ""}, "stop"),
        ({"stop": 5}, "stop"),
        ({"stop": ["a", 5]}, "stop"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"logit_bias": {"999999": 1}}, "logit_bias"),
        ({"seed": 2**70}, "seed"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"audio": {"voice": "alloy", "format": "wav"}}, "audio"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"function_call": "auto"}, "function_call"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"moderation": {"model": "m"}}, "moderation"),
        ({"guided_json": {}}, "guided_json"),
        ({"include_stop_str_in_output": True}, "include_stop_str_in_output"),
        ({"prediction": {"type": "file"}}, "prediction"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0]"),
        ({"tools": [TOOLS[0], TOOLS[0]]}, "tools[1]"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": "sometimes"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "no"}}}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": {}}}}, "tool_choice"),
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}}}, "response_format"),
        ({"json_schema": {"not": {}}}, "json_schema"),
        ({"regex": "("}, "regex"),
        ({"grammar": "start: x"}, "grammar"),
        ({"regex": "a", "grammar": "b"}, "grammar"),
        ({"model": 5}, "model"),
    ],
    ids=str,
)
def test_a_field_that_cannot_be_honoured_is_refused_by_name(scripted, fields, param):
    answer = scripted.post(CHAT, {"messages": HI, **fields})
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["param"]) == (400, "invalid_request_error", param), error
    assert "\n" not in error["message"]


def test_what_asks_for_nothing_is_no_reason_to_refuse(scripted):
    nothing = {
        "length_penalty": 1.0,
        "mirostat": 0,
        "chat_template_kwargs": {},
        "guided_json": None,
        "ignore_eos": False,
    }
    assert scripted.post(CHAT, {"messages": HI, **nothing}).status_code == 200
