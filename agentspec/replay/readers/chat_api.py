"""OpenAI's Chat Completions: the bodies of a request and of its answer, whole or streamed.

Source: OpenAI's API reference, Chat Completions (`chat.completion`, `chat.completion.chunk`). Arguments of calls are
texts, as the model wrote them. A server that returns token ids (vLLM's `return_token_ids`) has them in
`prompt_token_ids` and in a choice's `token_ids`. An answer whose usage counts thoughts that it does not hold is
approximate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Ids, Message, Said, Setting
from agentspec.replay.readers.base import ids_at, name_at, object_at, objects, text_at
from agentspec.replay.readers.messages import as_tools, openai_said, schema_of

_REASONING = ("reasoning_content", "reasoning")


def request(body: Mapping[str, Any]) -> tuple[tuple[Message, ...], Setting]:
    """The messages of a request, and its tools, schema and model.

    Raises:
        TraceError: It can't be used.
    """
    messages = objects(body, "messages")
    if not messages:
        raise TraceError("messages is missing or empty")
    tools = as_tools(objects(body, "tools") or objects(body, "functions"))
    setting = Setting(tools=tools, schema=schema_of(body.get("response_format")), model=name_at(body, "model"))
    return tuple(openai_said(message).message for message in messages), setting


def answers(body: Mapping[str, Any]) -> list[Said]:
    """The messages of a completion, one for each of its choices.

    Raises:
        TraceError: It can't be used.
    """
    choices = objects(body, "choices")
    if not choices:
        raise TraceError("the answer has no choices")
    prompt = ids_at(body, "prompt_token_ids")
    return [_choice(choice, prompt, hidden=_thought_unseen(body)) for choice in choices]


def assembled(chunks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The completion that was streamed in chunks.

    Raises:
        TraceError: A chunk can't be used.
    """
    found: dict[int, dict[str, Any]] = {}
    prompt: list[int] = []
    for chunk in chunks:
        prompt = prompt or list(ids_at(chunk, "prompt_token_ids"))
        for choice in objects(chunk, "choices"):
            message = found.setdefault(_index(choice), {"calls": {}, "texts": {}, "tokens": []})
            message["tokens"] += ids_at(choice, "token_ids")
            _add(message, object_at(choice, "delta"))
    choices = [{"message": _message(message), "token_ids": message["tokens"]} for _, message in sorted(found.items())]
    return {"object": "chat.completion", "choices": choices, "prompt_token_ids": prompt}


def _thought_unseen(body: Mapping[str, Any]) -> bool:
    return bool(object_at(object_at(body, "usage"), "completion_tokens_details").get("reasoning_tokens"))


def _choice(choice: Mapping[str, Any], prompt: tuple[int, ...], *, hidden: bool) -> Said:
    message = object_at(choice, "message")
    if not message:
        raise TraceError("a choice has no message")
    said = openai_said(message)
    kept: dict[str, Any] = {"role": "assistant", "content": said.message.get("content")}
    for key in _REASONING:
        if thought := text_at(message, key):
            kept["reasoning_content"] = thought
            break
    if calls := objects(said.message, "tool_calls"):
        kept["tool_calls"] = calls
    if not calls and kept["content"] is None:
        raise TraceError("the answer is empty: a refusal, or audio")
    tokens = ids_at(choice, "token_ids")
    approximate = said.approximate or (hidden and "reasoning_content" not in kept)
    return Said(kept, approximate, Ids(tokens, prompt) if tokens else None)


def _index(row: Mapping[str, Any]) -> int:
    index = row.get("index")
    return index if isinstance(index, int) else 0


def _add(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for key in ("content", *_REASONING):
        if text := text_at(delta, key):
            message["texts"][key] = message["texts"].get(key, "") + text
    for piece in objects(delta, "tool_calls"):
        function = object_at(piece, "function")
        made = message["calls"].setdefault(_index(piece), {"id": "", "name": "", "arguments": ""})
        made["id"] = made["id"] or text_at(piece, "id")
        made["name"] += text_at(function, "name")
        made["arguments"] += text_at(function, "arguments")


def _message(parts: Mapping[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None, **parts["texts"]}
    if parts["calls"]:
        message["tool_calls"] = [
            {"id": made["id"], "type": "function", "function": {"name": made["name"], "arguments": made["arguments"]}}
            for _, made in sorted(parts["calls"].items())
        ]
    return message
