"""`/v1/responses` over a real socket, mostly through OpenAI's own client."""

from __future__ import annotations

from typing import Any, Literal

import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel

from agentspec import SamplingParams
from agentspec.chat.base import BrokenCallDelta, ReasoningDelta, TextDelta, ToolCallDelta
from agentspec.local.result import Result, StreamEvent, Usage
from agentspec.server.openai.responses_answer import ResponseFrame
from agentspec.server.openai.responses_events import ResponseWriter
from agentspec.server.openai.responses_request import ResponsesRequest
from agentspec.server.problems import Problem
from agentspec.trace import Stats

MODEL = "smollm2-135m"
PATH = "/v1/responses"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "name": "get_weather", "description": "Weather.", "parameters": CITY, "strict": True}
TIME = {"type": "function", "name": "get_time", "parameters": None, "strict": None}
ONE = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
TWO = ONE + '\n<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
SCHEMA = {"type": "json_schema", "name": "a", "schema": {"type": "object"}}


@pytest.fixture
def client(endpoint):
    with OpenAI(base_url=endpoint.url + "/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def scripted_client(scripted):
    with OpenAI(base_url=scripted.url + "/v1", api_key="none", max_retries=0) as client:
        yield client


def no_ids(response: Any) -> dict[str, Any]:
    """A response without what differs from request to request."""
    told = response if isinstance(response, dict) else response.to_dict(mode="json", exclude_unset=True)
    for name in ("id", "created_at", "completed_at", "usage", "previous_response_id"):
        told.pop(name)
    for item in told["output"]:
        item.pop("id")
        item.pop("call_id", None)
    return told


def test_a_response_is_that_of_the_engine_and_is_cut_by_max_output_tokens(client, endpoint):
    response = client.responses.create(model=MODEL, instructions="Be kind.", input="Say hello.", max_output_tokens=8)
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Say hello."}]
    alone = endpoint.engine.generate(messages, SamplingParams(max_tokens=8), speculate=False)
    assert response.output_text == alone.text
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert response.output[0].status == "incomplete"
    assert (response.usage.input_tokens, response.usage.output_tokens) == (alone.usage.prompt_tokens, 8)


def test_events_come_in_their_order_and_add_up_to_the_whole(scripted, scripted_client):
    scripted.engine.reply = lambda prompt: "Sure." + TWO
    body = {"model": MODEL, "input": "hi", "tools": [WEATHER, TIME], "metadata": {"a": "b"}}
    whole = scripted_client.responses.create(**body)
    events = list(scripted_client.responses.create(**body, stream=True))
    kinds = [event.type.removeprefix("response.") for event in events]
    assert [kind for place, kind in enumerate(kinds) if kinds[place - 1] != kind] == [
        *("created", "in_progress"),
        *("output_item.added", "content_part.added", "output_text.delta"),
        *("output_text.done", "content_part.done", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"),
        "completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Sure."
    assert events[-1].response.output == [event.item for event in events if event.type == "response.output_item.done"]
    assert no_ids(events[-1].response) == no_ids(whole)
    calls = [(item.name, item.arguments, item.status) for item in whole.output[1:]]
    assert calls == [("get_weather", '{"city": "Oslo"}', "completed"), ("get_time", "{}", "completed")]
    assert len({item.call_id for item in whole.output[1:]}) == 2


def test_the_clients_helpers_read_streams_and_models(client):
    class Sky(BaseModel):
        color: Literal["blue", "gray"]

    body = {"model": MODEL, "input": "The sky?", "text_format": Sky}
    parsed = client.responses.parse(**body)
    assert parsed.output_parsed.color in ("blue", "gray")
    with client.responses.stream(**body) as stream:
        snapshots = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
        assert stream.get_final_response().output_parsed == parsed.output_parsed
    assert snapshots[-1] == parsed.output_text
    tools = [openai.pydantic_function_tool(Sky, name="paint")["function"] | {"type": "function"}]
    called = client.responses.parse(model=MODEL, input="The sky?", tools=tools, tool_choice="required")
    assert called.output[0].parsed_arguments["color"] in ("blue", "gray")


def test_a_tool_loop_goes_on_from_the_previous_response(scripted, scripted_client):
    scripted.engine.reply = lambda prompt: "It rains." if "RAIN" in prompt else "Sure." + ONE
    body = {"model": MODEL, "tools": [WEATHER]}
    first = scripted_client.responses.create(**body, instructions="Be brief.", input="Weather in Oslo?")
    result = {"type": "function_call_output", "call_id": first.output[1].call_id, "output": "RAIN"}
    second = scripted_client.responses.create(**body, previous_response_id=first.id, input=[result])
    assert second.output_text == "It rains."
    told = scripted.engine.prompts[-1]
    assert "Be brief." not in told, "instructions hold for one response"
    inputs = [{"role": "user", "content": "Weather in Oslo?"}, *first.output, result]
    anew = scripted_client.responses.create(**body, input=inputs)
    references = [inputs[0], *({"type": "item_reference", "id": item.id} for item in first.output), result]
    again = scripted_client.responses.create(**body, input=references)
    call = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    messages = [
        inputs[0],
        {"role": "assistant", "content": "Sure.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "RAIN"},
    ]
    scripted.post("/v1/chat/completions", {"messages": messages, "tools": [{"type": "function", "function": WEATHER}]})
    assert scripted.engine.prompts[-1] == told, "all of these ways tell one conversation"
    assert no_ids(second) == no_ids(anew) == no_ids(again)


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("required", ["get_weather"]),
        ({"type": "function", "name": "get_time"}, ["get_time"]),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_time"}]},
            ["get_time"],
        ),
        ("none", []),
    ],
)
def test_tool_choices(scripted, choice, names):
    scripted.engine.reply = lambda prompt: ONE if names == ["get_weather"] else TWO[len(ONE) + 1 :] if names else "No."
    body = {"input": "hi", "tools": [WEATHER, TIME], "tool_choice": choice, "parallel_tool_calls": False}
    answer = scripted.post(PATH, body).json()
    assert [item["name"] for item in answer["output"] if item["type"] == "function_call"] == names
    assert answer["tool_choice"] == choice


@pytest.mark.parametrize(("reply", "kind"), [(ONE, "function_call"), ('{"a": 1}', "message")])
def test_a_format_holds_what_is_no_call(scripted, reply, kind):
    scripted.engine.reply = lambda prompt: reply
    body = {"input": "hi", "tools": [WEATHER], "text": {"format": SCHEMA}}
    (item,) = scripted.post(PATH, body).json()["output"]
    assert item["type"] == kind


def test_log_probabilities_go_with_the_text_however_it_is_drafted(endpoint):
    body = {"input": "Say hello.", "max_output_tokens": 6, "include": ["message.output_text.logprobs"]}
    answer = endpoint.post(PATH, {**body, "top_logprobs": 2}).json()
    (part,) = answer["output"][0]["content"]
    assert "".join(each["token"] for each in part["logprobs"]) == part["text"]
    assert [len(each["top_logprobs"]) for each in part["logprobs"]] == [2] * 6
    plain = endpoint.post(PATH, {**body, "top_logprobs": 2, "speculate": False}).json()
    assert [each["token"] for each in plain["output"][0]["content"][0]["logprobs"]] == [
        each["token"] for each in part["logprobs"]
    ]


def new_writer() -> ResponseWriter:
    request = ResponsesRequest(model=MODEL, input="hi")
    return ResponseWriter(ResponseFrame(request, SamplingParams()), lambda token: b"")


def written(*deltas: Any, finish: str = "stop") -> tuple[list[str], dict[str, Any]]:
    """The events, but for deltas, and the whole of an answer that is written delta by delta."""
    writer = new_writer()
    events = writer.opening()
    for delta in deltas:
        events += writer.wrote(StreamEvent("", (delta,), ()))
    result = Result((), "", {}, finish, Usage(1, 1), Stats(), 0)  # type: ignore[arg-type]
    events += writer.wrote(StreamEvent("", (), (), result=result))
    assert writer.whole is not None
    return [event["type"].removeprefix("response.") for event in events[2:]], writer.whole


def test_reasoning_is_an_item_of_its_own_before_the_message():
    events, whole = written(ReasoningDelta("So"), ReasoningDelta(" it is."), TextDelta("Yes."))
    assert events[:7] == [
        *("output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.delta"),
        *("reasoning_text.done", "content_part.done", "output_item.done"),
    ]
    assert [item["type"] for item in whole["output"]] == ["reasoning", "message"]
    assert whole["output"][0]["content"] == [{"type": "reasoning_text", "text": "So it is."}]


def test_a_call_that_is_cut_off_is_incomplete_and_an_empty_answer_an_empty_message():
    cut = ToolCallDelta(0, "call_1", "w", ""), ToolCallDelta(0, arguments='{"a'), BrokenCallDelta(0, '{"a')
    _, whole = written(*cut, finish="length")
    assert whole["status"] == whole["output"][0]["status"] == "incomplete"
    assert whole["output"][0]["arguments"] == '{"a'
    _, whole = written()
    assert (whole["status"], whole["output"][0]["content"][0]["text"]) == ("completed", "")


def test_what_fails_tells_how_far_it_came():
    writer = new_writer()
    writer.wrote(StreamEvent("", (TextDelta("So"),), ()))
    response = writer.failed(Problem(500, "no", "server_error"))["response"]
    assert (response["status"], response["output"][0]["status"]) == ("failed", "incomplete")
    assert response["error"] == {"code": "server_error", "message": "no"}


def test_what_runs_out_of_time_fails_in_the_stream_and_with_a_status_outside(serve):
    slow = serve(request_timeout_s=0.2)
    more = {"min_tokens": 4000}
    with OpenAI(base_url=slow.url + "/v1", api_key="none", max_retries=0) as client:
        events = list(client.responses.create(model=MODEL, input="Count.", extra_body=more, stream=True))
    assert (events[-1].type, events[-1].response.error.code) == ("response.failed", "server_error")
    assert slow.post(PATH, {"input": "Count.", **more}).status_code == 504


def test_responses_are_remembered_up_to_a_bound(serve, scripted):
    bounded = serve(scripted.engine, max_responses=2)
    scripted.engine.reply = lambda prompt: "Yes."
    made = [bounded.post(PATH, {"input": "hi"}).json() for _ in range(2)]
    assert bounded.get(f"{PATH}/{made[0]['id']}").json() == made[0], "which now was used last"
    unkept = bounded.post(PATH, {"input": "hi", "store": False}).json()
    made.append(bounded.post(PATH, {"input": "hi"}).json())
    statuses = [bounded.get(f"{PATH}/{each['id']}").status_code for each in (*made, unkept)]
    assert statuses == [200, 404, 200, 404]
    with OpenAI(base_url=bounded.url + "/v1", api_key="none", max_retries=0) as client:
        client.responses.delete(made[0]["id"])
        with pytest.raises(openai.NotFoundError) as refused:
            client.responses.create(model=MODEL, input="hi", previous_response_id=made[0]["id"])
    assert (refused.value.param, refused.value.code) == ("previous_response_id", "previous_response_not_found")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": []}, "input"),
        ({"input": 7}, "input"),
        ({"input": ["hi"]}, "input[0]"),
        ({"input": [{"role": "banana", "content": "hi"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0]"),
        ({"input": [{"role": "user", "content": "\ud800"}]}, "input[0].content"),
        ({"input": [{"type": "web_search_call"}]}, "input[0].type"),
        ({"input": [{"type": "function_call_output", "call_id": "x", "output": ""}]}, "input[0].call_id"),
        ({"input": "a" * 5000}, "input"),
        ({"tools": [TIME, {"type": "web_search"}]}, "tools[1]"),
        ({"tools": [{"type": "function", "name": None}]}, "tools[0].name"),
        ({"tools": [WEATHER, WEATHER]}, "tools[1]"),
        ({"tools": [{**WEATHER, "parameters": {"x": float("nan")}}]}, "tools"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "mcp", "server_label": "m"}}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"text": {"format": {"type": "xml"}}}, "text.format"),
        ({"text": {"format": {**SCHEMA, "name": 5}}}, "text.format.name"),
        ({"text": {"format": {**SCHEMA, "schema": {"type": "strange"}}}}, "text.format"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"top_logprobs": 21, "include": ["message.output_text.logprobs"]}, "top_logprobs"),
        ({"include": ["everything"]}, "include"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"messages": []}, "messages"),
        ({"n": 2}, "n"),
        ({"truncation": "middle"}, "truncation"),
    ],
)
def test_what_can_not_be_honoured_is_refused_by_name(scripted, body, param):
    answer = scripted.post(PATH, {"input": "hi", **body})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text


def test_what_changes_nothing_is_taken(scripted):
    scripted.engine.reply = lambda prompt: "{}"
    body = {
        "input": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
            {"role": "user", "content": "hi"},
        ],
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
        "truncation": "auto",
        "background": False,
        "service_tier": "auto",
        "stream_options": {"include_obfuscation": False},
        "tools": [],
    }
    answer = scripted.post(PATH, body)
    assert answer.json()["output"][0]["content"][0]["text"] == "{}", answer.text
    assert isinstance(answer.json()["created_at"], int), "clients of other languages read whole seconds"
