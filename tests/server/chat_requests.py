"""Chat completions as tests send them, and chunks added up as clients do, with the rules of P18 and P21 checked."""

from __future__ import annotations

from typing import Any

CHAT = "/v1/chat/completions"
HI = [{"role": "user", "content": "hi"}]


def tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}


TOOLS = [tool("get_weather", city={"type": "string"}), tool("get_time")]
NAMED = {"type": "function", "function": {"name": "get_weather"}}
ONE = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
TWO = ONE + '\n<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
CALLED = [("get_weather", '{"city": "Oslo"}'), ("get_time", "{}")]


def ask(endpoint, reply: str, **body: Any) -> dict[str, Any]:
    """The answer to a request, which is also streamed: what the chunks add up to must be the same."""
    endpoint.engine.reply = lambda prompt: reply
    body = {"messages": HI, **body}
    answer = endpoint.post(CHAT, body)
    assert answer.status_code == 200, answer.text
    whole = answer.json()
    (choice,) = whole["choices"]
    added, finish, usage = add_up(endpoint.events(CHAT, {**body, "stream_options": {"include_usage": True}}))
    ids = [call.pop("id") for message in (choice["message"], added) for call in message.get("tool_calls", [])]
    assert len(set(ids)) == len(ids), "each call has an id of its own"
    assert all(call.startswith("call_") for call in ids)
    assert (added, finish) == (choice["message"], choice["finish_reason"])
    assert {**usage, "prompt_tokens_details": None} == {**whole["usage"], "prompt_tokens_details": None}
    return whole


def add_up(chunks: list[dict[str, Any]]) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """The message, finish reason and usage of a stream, added up as clients do, with P18's and P21's rules checked."""
    *chunks, last = chunks
    assert last["choices"] == []
    assert not any(chunk.get("usage") for chunk in chunks)
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    finishes = []
    for place, chunk in enumerate(chunks):
        (choice,) = chunk["choices"]
        delta = choice["delta"]
        assert ("role" in delta) == (place == 0)
        finishes += [choice["finish_reason"]] if choice.get("finish_reason") else []
        if delta.get("content"):
            message["content"] = (message["content"] or "") + delta["content"]
        for call in delta.get("tool_calls", []):
            assert not delta.get("content")
            add_call(message.setdefault("tool_calls", []), call)
    if "tool_calls" not in message:
        message["content"] = message["content"] or ""
    (finish,) = finishes
    return message, finish, last["usage"]


def add_call(calls: list[dict[str, Any]], more: dict[str, Any]) -> None:
    index = more.pop("index")
    if index == len(calls):
        assert (more["type"], more["function"]["arguments"]) == ("function", "")
        calls.append(more)
    else:
        assert set(more) == {"function"}
        assert set(more["function"]) == {"arguments"}
        calls[index]["function"]["arguments"] += more["function"]["arguments"]


def called(answer: dict[str, Any]) -> list[tuple[str, str]]:
    calls = answer["choices"][0]["message"].get("tool_calls", [])
    return [(call["function"]["name"], call["function"]["arguments"]) for call in calls]
