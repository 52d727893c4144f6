"""`/v1/messages` over a real socket, asked by Anthropic's own client."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import pytest
from endpoint_server import MODEL

from agentspec import SamplingParams
from agentspec.chat.base import BrokenCallDelta, ReasoningDelta, TextDelta, ToolCallDelta
from agentspec.server.anthropic.answer import MessageAnswer
from agentspec.server.anthropic.turns import read_turns
from agentspec.server.problems import Problem

HELLO = [{"role": "user", "content": "Say hello."}]
TOOL = {
    "name": "get_weather",
    "description": "The weather in a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]}},
        "required": ["city"],
    },
    "cache_control": {"type": "ephemeral"},
}
ONE = {"type": "any", "disable_parallel_tool_use": True}
ASK_WEATHER = [{"role": "user", "content": "How is the weather in Oslo?"}]


@pytest.fixture
def client(endpoint) -> Any:
    with anthropic.Anthropic(base_url=endpoint.url, api_key="none", max_retries=0) as made:
        yield made


def ask(client: Any, **fields: Any) -> Any:
    return client.messages.create(**{"model": MODEL, "messages": HELLO, "max_tokens": 8, **fields})


def streamed(client: Any, **fields: Any) -> Any:
    with client.messages.stream(**{"model": MODEL, "messages": HELLO, "max_tokens": 8, **fields}) as stream:
        return stream.get_final_message()


def test_a_message_is_the_engines_answer(endpoint, client) -> None:
    answer = ask(client, system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}])
    asked = [{"role": "system", "content": "Be brief."}, *HELLO]
    alone = endpoint.engine.generate(asked, SamplingParams(max_tokens=8), speculate=False)
    assert [(block.type, block.text) for block in answer.content] == [("text", alone.text)]
    assert (answer.role, answer.model, answer.stop_reason, answer.stop_sequence) == (
        "assistant",
        MODEL,
        "max_tokens",
        None,
    )
    assert answer.usage.output_tokens == 8


def test_events_come_in_anthropics_order_and_add_up_to_the_whole_message(client) -> None:
    fields = {"tools": [TOOL], "tool_choice": ONE, "messages": ASK_WEATHER, "max_tokens": 64}
    events = [*client.messages.create(model=MODEL, stream=True, **fields)]
    kinds = [event.type for event in events]
    assert [kind for kind, last in zip(kinds, [None, *kinds], strict=False) if kind != last] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[0].message.usage.input_tokens > 0
    whole, added = ask(client, **fields), streamed(client, **fields)
    assert told(whole) == told(added)
    assert (whole.stop_reason, events[-2].usage.output_tokens) == ("tool_use", whole.usage.output_tokens)


def test_a_loop_of_two_turns_calls_a_tool_and_ends(client) -> None:
    first = ask(client, messages=ASK_WEATHER, tools=[TOOL], tool_choice=ONE, max_tokens=64)
    (call,) = first.content
    assert (first.stop_reason, call.name) == ("tool_use", "get_weather")
    assert call.input["city"] in ("Oslo", "Rome")
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "9 degrees"}]}
    schema = {"type": "object", "properties": {"degrees": {"const": 9}}, "required": ["degrees"]}
    last = ask(
        client,
        messages=[*ASK_WEATHER, first.to_param(), {"role": "user", "content": [result]}],
        tools=[TOOL],
        tool_choice={"type": "none"},
        output_config={"format": {"type": "json_schema", "schema": schema | {"additionalProperties": False}}},
        max_tokens=64,
    )
    assert (last.stop_reason, json.loads(last.content[0].text)) == ("end_turn", {"degrees": 9})


@pytest.mark.parametrize(("seed", "reason"), [(5, "tool_use"), (2, "end_turn")])
def test_with_tools_and_a_format_the_answer_is_a_call_or_a_document(client, seed: int, reason: str) -> None:
    schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}
    fields = {
        "messages": ASK_WEATHER,
        "tools": [TOOL],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
        "extra_body": {"temperature": 2.0, "seed": seed},
        "max_tokens": 64,
    }
    whole = ask(client, **fields)
    assert told(whole) == told(streamed(client, **fields))
    assert whole.stop_reason == reason
    (block,) = whole.content
    found = block.input if reason == "tool_use" else json.loads(block.text)
    assert found in ([{"city": "Oslo"}, {"city": "Rome"}] if reason == "tool_use" else [{"n": 1}, {"n": 2}])


def test_the_stop_sequence_that_ended_the_answer_is_named(endpoint, client) -> None:
    text = endpoint.engine.generate(HELLO, SamplingParams(max_tokens=8)).text
    stop = text[5:9]
    for answer in (ask(client, stop_sequences=["never", stop]), streamed(client, stop_sequences=["never", stop])):
        assert (answer.stop_reason, answer.stop_sequence) == ("stop_sequence", stop)
        assert answer.content[0].text == text[: text.find(stop)]


def test_a_call_that_is_cut_off_is_the_same_streamed_and_whole(client) -> None:
    fields = {"messages": ASK_WEATHER, "tools": [TOOL], "tool_choice": {"type": "tool", "name": "get_weather"}}
    last = ask(client, max_tokens=64, **fields).usage.output_tokens
    found = []
    for most in (2, last - 9, last):
        whole, added = (make(client, max_tokens=most, **fields) for make in (ask, streamed))
        assert told(whole) == told(added)
        found.append((whole.stop_reason, [block.type for block in whole.content]))
    assert found == [("max_tokens", ["text"]), ("max_tokens", ["tool_use"]), ("tool_use", ["tool_use"])]


def told(message: Any) -> Any:
    """What a message says, without ids."""
    blocks = [(block.type, block.input if block.type == "tool_use" else block.text) for block in message.content]
    return message.stop_reason, blocks, message.usage.output_tokens


def test_tokens_are_counted_as_the_answer_counts_them(client) -> None:
    fields = {"messages": ASK_WEATHER, "tools": [TOOL], "system": "Be brief."}
    counted = client.messages.count_tokens(model=MODEL, **fields).input_tokens
    usage = ask(client, max_tokens=1, **fields).usage
    assert counted == usage.input_tokens + usage.cache_read_input_tokens
    assert counted > client.messages.count_tokens(model=MODEL, tool_choice={"type": "none"}, **fields).input_tokens


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


@pytest.mark.parametrize(
    ("fields", "status", "kind", "words"),
    [
        ({"model": "claude"}, 404, "not_found_error", f"no model is called 'claude'; there are: {MODEL}"),
        ({"max_tokens": None}, 400, "invalid_request_error", "max_tokens"),
        ({"max_tokens": 0}, 400, "invalid_request_error", "max_tokens"),
        ({"messages": []}, 400, "invalid_request_error", "messages"),
        ({"messages": [*HELLO, {"role": "user", "content": [IMAGE]}]}, 400, "invalid_request_error", "messages[1]"),
        ({"messages": [{"role": "tool", "content": "x"}]}, 400, "invalid_request_error", "messages[0]"),
        ({"messages": [*HELLO, {"role": "assistant", "content": "He"}]}, 400, "invalid_request_error", "messages[1]"),
        ({"tools": [{"type": "web_search_20250305", "name": "ws"}]}, 400, "invalid_request_error", "tools[0]: 'ws'"),
        ({"tools": [{"name": "x"}]}, 400, "invalid_request_error", "input_schema"),
        ({"tool_choice": {"type": "any"}}, 400, "invalid_request_error", "tool_choice"),
        ({"temperature": -1}, 400, "invalid_request_error", "temperature"),
        (
            {"messages": [{"role": "user", "content": "a b " * 9000}]},
            400,
            "invalid_request_error",
            "prompt is too long",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_in_anthropics_words(endpoint, fields, status, kind, words) -> None:
    answer = endpoint.post("/v1/messages", {"messages": HELLO, "max_tokens": 4, **fields})
    body = answer.json()
    assert (answer.status_code, body["type"], body["error"]["type"]) == (status, "error", kind)
    assert words in body["error"]["message"]


def test_the_door_speaks_anthropic_too(serve) -> None:
    running = serve(api_key="secret", max_body_bytes=2000, max_queue=0)
    asked = {"messages": HELLO, "max_tokens": 2}
    claude_code = {"anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14", "x-app": "cli"}
    path = "/v1/messages?beta=true"
    assert running.post(path, asked, {"x-api-key": "secret", **claude_code}).status_code == 200
    with anthropic.Anthropic(base_url=running.url, api_key="wrong", max_retries=0) as client:
        with pytest.raises(anthropic.AuthenticationError) as refused:
            ask(client)
        assert refused.value.body["error"]["type"] == "authentication_error"
    long = running.post(path, {**asked, "system": "x" * 2000}, {"x-api-key": "secret"})
    assert (long.status_code, long.json()["error"]["type"]) == (413, "request_too_large")


def test_time_that_runs_out_is_an_event(serve) -> None:
    running = serve(request_timeout_s=0.3)
    with anthropic.Anthropic(base_url=running.url, api_key="none", max_retries=0) as client:
        with pytest.raises(anthropic.APIStatusError, match="ran out of time"):
            streamed(client, max_tokens=4000)


def test_turns_become_what_the_engine_reads() -> None:
    billing = "x-anthropic-billing-header: cc_version=2; cch=1;"
    system = [{"type": "text", "text": text} for text in (billing, "Be brief.", "Be kind.")]
    call = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}}
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    said = {"type": "text", "text": "Let me see."}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no such city", "is_error": True}
    messages = [
        *HELLO,
        {"role": "assistant", "content": [thought, {"type": "redacted_thinking", "data": "x"}, said, call]},
        {"role": "user", "content": [result, {"type": "text", "text": "So?"}, {"type": "text", "text": "Go on."}]},
    ]
    function = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
    assert read_turns(system, messages) == [
        {"role": "system", "content": "Be brief.\nBe kind."},
        {"role": "user", "content": "Say hello."},
        {
            "role": "assistant",
            "content": "Let me see.",
            "reasoning_content": "Hm.",
            "tool_calls": [{"id": "toolu_1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "toolu_1", "content": "Error: no such city", "name": "get_weather"},
        {"role": "user", "content": "So?\nGo on."},
    ]
    with pytest.raises(Problem, match=r"messages\[0\]\.content\[0\]\.content\[0\]: a block of type 'image'"):
        read_turns(None, [{"role": "user", "content": [{**result, "content": [IMAGE]}]}])


def test_thoughts_text_and_calls_are_blocks_of_their_own() -> None:
    answer = MessageAnswer(MODEL)
    deltas = [
        [ReasoningDelta("Hm"), ReasoningDelta("."), TextDelta("So"), BrokenCallDelta(None, " on")],
        [ToolCallDelta(0, "call_0", "f"), ToolCallDelta(0, arguments='{"a": '), ToolCallDelta(0, arguments="1}")],
        [ToolCallDelta(1, "call_1", "g", '{"b": "cut o'), BrokenCallDelta(1, "")],
    ]
    events = [event for part in deltas for event in answer.events(part)]
    assert [
        (event["index"], event.get("delta") or event["type"].removeprefix("content_block_")) for event in events
    ] == [
        (0, "start"),
        (0, {"type": "thinking_delta", "thinking": "Hm"}),
        (0, {"type": "thinking_delta", "thinking": "."}),
        (0, {"type": "signature_delta", "signature": "agentspec"}),
        (0, "stop"),
        (1, "start"),
        (1, {"type": "text_delta", "text": "So"}),
        (1, {"type": "text_delta", "text": " on"}),
        (1, "stop"),
        (2, "start"),
        (2, {"type": "input_json_delta", "partial_json": '{"a": '}),
        (2, {"type": "input_json_delta", "partial_json": "1}"}),
        (2, "stop"),
        (3, "start"),
        (3, {"type": "input_json_delta", "partial_json": '{"b": "cut o'}),
    ]
