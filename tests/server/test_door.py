"""Who may come in, what is too large or no request at all, and what is told and logged of it."""

from __future__ import annotations

import json
import logging
import math
from typing import Any

import httpx
import pytest
from chat_requests import CHAT, HI, TOOLS, tool

from agentspec.errors import ConfigError
from agentspec.server.settings import ServerSettings

BODY = {"model": "smollm2-135m", "messages": HI, "max_tokens": 1}
SECRET = "xyzzy-prompt"


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """All that the server logs, even below what is shown by default."""
    for name in ("agentspec", "uvicorn", "fastapi"):
        caplog.set_level(logging.DEBUG, name)
    return caplog


def refused(answer: httpx.Response, status: int, code: str | None = None) -> str:
    """The message of a refusal in OpenAI's form."""
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code), error
    assert "\n" not in error["message"]
    return error["message"]


@pytest.mark.parametrize(
    "shown", [{"Authorization": "Bearer k1"}, {"authorization": "bearer  k1"}, {"x-api-key": "k1"}]
)
def test_who_has_the_key_comes_in_under_any_host_name(serve, scripted, shown):
    endpoint = serve(scripted.engine, api_key="k1")
    assert endpoint.post(CHAT, BODY, headers={"Host": "box.example:80", **shown}).status_code == 200


@pytest.mark.parametrize(
    "shown",
    [
        {},
        {"Authorization": "Bearer k2"},
        {"Authorization": "Basic k1"},
        {"Authorization": "k1"},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer k1x"},
        {"x-api-key": ""},
        {"x-api-key": "k2"},
    ],
    ids=str,
)
def test_who_has_not_stays_outside(serve, scripted, shown):
    endpoint = serve(scripted.engine, api_key="k1")
    answer = endpoint.post(CHAT, BODY, headers=shown)
    assert "key" in refused(answer, 401, "invalid_api_key")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    for path in ("/v1/models", "/v1/models/smollm2-135m", "/metrics", "/openapi.json"):
        assert endpoint.get(path, headers=shown).status_code == 401
    assert endpoint.get("/health", headers=shown).status_code == 200


def test_a_key_that_is_no_ascii_is_just_wrong(serve, scripted):
    endpoint = serve(scripted.engine, api_key="k1")
    refused(httpx.post(endpoint.url + CHAT, json=BODY, headers=[(b"x-api-key", b"\xff")]), 401, "invalid_api_key")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.nip.example", ""]
)
def test_without_a_key_a_page_of_another_host_stays_outside(scripted, host):
    refused(scripted.post(CHAT, BODY, headers={"Host": host}), 403, "wrong_host")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "localhost:1", "127.0.0.1", "127.9.9.9:80", "[::1]", "[::1]:8000"]
)
def test_this_machine_comes_in(scripted, host):
    assert scripted.get("/v1/models", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("cors", [(), ("https://page.example",)])
def test_a_page_may_call_if_its_origin_was_named(serve, scripted, cors):
    endpoint = serve(scripted.engine, cors=cors)
    asks = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    answer = httpx.options(endpoint.url + CHAT, headers=asks)
    assert (answer.headers.get("access-control-allow-origin") == "https://page.example") == bool(cors)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_refused_as_it_comes(serve, scripted, chunked):
    endpoint = serve(scripted.engine, max_body_bytes=1000)
    content = json.dumps({**BODY, "user": "x" * 1000}).encode()
    body: Any = (content[place : place + 100] for place in range(0, len(content), 100)) if chunked else content
    answer = httpx.post(endpoint.url + CHAT, content=body, headers={"Content-Type": "application/json"})
    assert "1,000 bytes" in refused(answer, 413)


def test_a_body_of_the_largest_size_is_read(serve, scripted):
    content = json.dumps(BODY).encode()
    endpoint = serve(scripted.engine, max_body_bytes=len(content))
    answer = httpx.post(endpoint.url + CHAT, content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"messages": HI * 5}, "5 messages, at most 4"),
        ({"tools": [tool(f"t{place}") for place in range(3)]}, "3 tools, at most 2"),
        ({"tools": [tool("t", x={"type": "string", "description": "x" * 1000})]}, "tools has 1,1"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"enum": ["x" * 1000]}}}},
            "at most 1,000",
        ),
        ({"regex": "x" * 1001}, "1,001 bytes"),
        ({"n": 3}, "at most 2"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_too_large_is_refused_by_size(serve, scripted, fields, words):
    endpoint = serve(scripted.engine, max_messages=4, max_tools=2, max_schema_bytes=1000, max_answers=2)
    assert words in refused(endpoint.post(CHAT, {**BODY, **fields}), 400)


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (b"{", "application/json", "not JSON"),
        (b"", "application/json", "body"),
        (b'{"model": "\xff"}', "application/json", "the body is not utf-8: byte 11 is 0xff"),
        (b"[]", "application/json", "body"),
        (b'{"model": 1e999999}', "application/json", "model"),
        (b"[" * 100_000, "application/json", "nested too deep"),
        (b'{"temperature": ' + b"9" * 5000 + b"}", "application/json", "a number of more than 4,300 digits"),
        (json.dumps(BODY).encode(), "text/plain", "application/json"),
        (json.dumps(BODY).encode(), "application/x-www-form-urlencoded", "application/json"),
        (json.dumps(BODY).encode(), "", "application/json"),
        ("{}".encode("utf-16"), "application/json; charset=utf-16", "model"),
        (json.dumps({**BODY, "temperature": float("nan")}).encode(), "application/json", "temperature"),
        (json.dumps({**BODY, "logit_bias": {"\ud800": 1}}).encode(), "application/json", "logit_bias"),
        (json.dumps({**BODY, "tool_choice": "\ud800\n"}).encode(), "application/json", "tool_choice"),
        (json.dumps({**BODY, "json_schema": {"const": "\ud800"}}).encode(), "application/json", "schema"),
    ],
)
def test_what_is_no_request_is_told_in_one_line(scripted, content, kind, words):
    answer = httpx.post(scripted.url + CHAT, content=content, headers={"Content-Type": kind} if kind else {})
    assert words in refused(answer, 400)


@pytest.mark.parametrize(
    "path", [CHAT, "/v1/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"]
)
def test_every_api_tells_why_a_body_can_not_be_read(scripted, path):
    answer = httpx.post(scripted.url + path, content=b'"\xff"', headers={"Content-Type": "application/json"})
    assert "byte 1 is 0xff" in answer.json()["error"]["message"]


def test_json_within_a_text_that_is_nested_too_deep_is_the_clients_fault(scripted, monkeypatch):
    def deep(*given: object) -> None:
        raise RecursionError

    monkeypatch.setattr(scripted.engine._asker, "read", deep)
    assert "nested too deep" in refused(scripted.post(CHAT, BODY), 400)


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", CHAT, 405, "use POST"),
        ("POST", "/v1/models", 405, "use GET"),
        ("PATCH", "/v1/responses/a", 405, "use DELETE, GET"),
        ("POST", "/v1/embeddings", 404, "what does: POST /v1/chat/completions, /v1/completions, /v1/responses"),
        ("POST", "/v1/messages/batches", 404, "nothing answers POST '/v1/messages/batches' here"),
        ("GET", "/v1/models/other", 404, "no model is called"),
    ],
)
def test_other_paths_and_methods_are_told_what_there_is(scripted, method, path, status, words):
    answer = httpx.request(method, scripted.url + path)
    kind = "not_found_error" if path.startswith("/v1/messages") else "invalid_request_error"
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind)
    assert words in answer.json()["error"]["message"]
    assert answer.headers.get("Allow", "") == (words.removeprefix("use ") if status == 405 else "")


def test_models_are_listed_under_the_names_that_were_given(serve, scripted):
    endpoint = serve(scripted.engine, model_names=("a", "org/b"))
    assert [model["id"] for model in endpoint.get("/v1/models").json()["data"]] == ["a", "org/b"]
    assert endpoint.get("/v1/models/org/b").json()["id"] == "org/b"
    message = refused(endpoint.post(CHAT, {**BODY, "model": "c"}), 404, "model_not_found")
    assert message == "no model is called 'c'; there are: a, org/b"


def test_a_fault_of_the_server_is_told_without_detail_and_logged(serve, scripted, monkeypatch, logged):
    def fails(*given: object) -> None:
        raise FileNotFoundError("/home/ann/model/config.json")

    endpoint = serve(scripted.engine)
    monkeypatch.setattr(scripted.engine._asker, "read", fails)
    for stream in (True, False):
        assert refused(endpoint.post(CHAT, {**BODY, "stream": stream}), 500) == "a fault of the server: see its log"
    assert "/home/ann" in logged.text


@pytest.mark.parametrize("stream", [True, False])
def test_prompts_and_answers_are_not_logged(scripted, logged, capfd, stream):
    messages = [{"role": "user", "content": SECRET}]
    scripted.engine.reply = lambda prompt: "plugh-answer"
    assert scripted.post(CHAT, {"messages": messages, "tools": TOOLS, "stream": stream}).status_code == 200
    for wrong in ({"role": SECRET}, {"content": [5, SECRET]}):
        assert scripted.post(CHAT, {"messages": [{**messages[0], **wrong}]}).status_code == 400
    told = logged.text + "".join(capfd.readouterr())
    assert SECRET not in told
    assert "plugh" not in told


@pytest.mark.parametrize(
    ("path", "field", "value", "words"),
    [
        (CHAT, "logit_bias", {"9" * 5000: 1}, "logit_bias maps token ids"),
        (CHAT, "max_tokens", 0, "max_tokens must be at least 1, not 0"),
        (CHAT, "stop", "\ud800", "stop holds a lone surrogate"),
        (CHAT, "response_format", {}, "response_format must have the type"),
        (CHAT, "tool_choice", {"type": "allowed_tools", "tools": [{"name": ["a"]}]}, "which is none of the tools"),
        ("/v1/messages", "tool_choice", {"type": ["any"]}, "tool_choice must have the type"),
        ("/v1/responses", "metadata", {"a": "\ud800"}, "metadata holds what JSON can't"),
        ("/v1/responses", "user", "\ud800", "user holds what JSON can't"),
        (CHAT, "messages", [*HI, {"role": "assistant", "function_call": {"name": "a"}}], "tell the call in tool_calls"),
        (CHAT, "min_tokens", 8193, "min_tokens is 8193, but"),
        ("/v1/messages", "stop_sequences", [""], "stop_sequences must hold non-empty strings"),
        (
            CHAT,
            "chat_template_kwargs",
            {"enable_thinking": False},
            "use what the model reads in a message, such as Qwen",
        ),
        (CHAT, "guided_choice", ["yes", "no"], "use regex with an alternative for each, such as (yes|no)"),
        ("/v1/responses", "ignore_eos", True, "use min_tokens, as many as max_tokens"),
        ("/v1/messages", "regex", "a", "regex is not supported: use /v1/chat/completions"),
        ("/v1/completions", "response_format", {"type": "json_object"}, "use json_schema, regex or grammar"),
    ],
)
def test_a_value_of_a_kind_that_nobody_sends_is_the_clients_fault(endpoint, path, field, value, words) -> None:
    tools = [{"name": "a", "input_schema": {}}] if path == "/v1/messages" else TOOLS
    asked: dict[str, Any] = {
        CHAT: {"messages": HI, "tools": tools},
        "/v1/messages": {"messages": HI, "tools": tools, "max_tokens": 1},
        "/v1/responses": {"input": "hi"},
        "/v1/completions": {"prompt": "hi"},
    }[path]
    sent = json.dumps({"model": "smollm2-135m", **asked, field: value})
    answer = httpx.post(endpoint.url + path, content=sent, headers={"Content-Type": "application/json"})

    assert (answer.status_code, words in answer.json()["error"]["message"]) == (400, True), answer.text


@pytest.mark.parametrize("value", [{"grace_s": math.inf}, {"api_key": "s\u00e9cret"}, {"api_key": "key "}])
def test_settings_that_no_server_can_keep_are_refused(value) -> None:
    with pytest.raises(ConfigError):
        ServerSettings(model_names=("a",), **value)
