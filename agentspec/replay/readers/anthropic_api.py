"""Anthropic's Messages: the bodies of a request and of its answer, whole or streamed.

Source: Anthropic's API reference, Messages. A message's content is a text or a list of blocks: `text`, `thinking`,
`tool_use` (its `input` is an object: the model's white space is lost), and the user's `tool_result`. A stream has the
input as the model wrote it, in pieces of `partial_json`. The system prompt and the tools stand beside the messages.
Blocks of tools that run at the provider, and redacted thoughts, can't be told as a message's text: a message with one
is approximate, as is an answer that goes on from a text which the client had begun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Message, Said, Setting
from agentspec.replay.readers.base import object_at, object_list, objects, text_at
from agentspec.replay.readers.messages import assistant, call, content_of, setting_of, text_of, tool_result

_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})  # that only this API has
_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def has_blocks(message: object) -> bool:
    """Whether a value is a message with a block that only this API has."""
    content = message.get("content") if isinstance(message, dict) else None
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and str(part.get("type")) in _BLOCKS for part in parts)


def request(body: Mapping[str, Any]) -> tuple[tuple[Message, ...], Setting]:
    """The messages of a request, the system prompt first, and its tools, schema and model.

    Raises:
        TraceError: It can't be used.
    """
    messages = objects(body, "messages")
    if not messages:
        raise TraceError("messages is missing or empty")
    asked = [said.message for message in messages for said in read_message(message)]
    if system := body.get("system"):
        asked.insert(0, {"role": "system", "content": content_of(system)})
    held = object_at(object_at(body, "output_config") or {"format": body.get("output_format")}, "format")
    return tuple(asked), setting_of(body, held)


def answer(body: Mapping[str, Any]) -> Said:
    """The message that a model answered with.

    Raises:
        TraceError: It can't be used.
    """
    if not body.get("content"):
        raise TraceError("the answer is empty")
    return _assistant(body)


def read_message(message: Mapping[str, Any]) -> list[Said]:
    """A message of a request: the tools' results in it become messages of their own, before its text.

    Raises:
        TraceError: It can't be used.
    """
    role, content = message.get("role"), message.get("content")
    if role == "assistant":
        return [_assistant(message)]
    if not isinstance(content, list):
        return [Said({"role": role, "content": content_of(content)})]
    blocks = object_list(content, "content")
    results = [block for block in blocks if block.get("type") == "tool_result"]
    found = [Said(tool_result(text_at(block, "tool_use_id"), block.get("content"))) for block in results]
    rest = [block for block in blocks if block.get("type") != "tool_result"]
    return [*found, Said({"role": role, "content": content_of(rest)})] if rest or not found else found


def assembled(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The message that was streamed in events; the input of its calls is a text.

    Raises:
        TraceError: An event can't be used.
    """
    body: dict[str, Any] = {"type": "message", "role": "assistant"}
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        index = event.get("index")
        place = index if isinstance(index, int) else 0
        if event.get("type") == "message_start":
            body |= object_at(event, "message")
        elif event.get("type") == "content_block_start":
            blocks[place] = dict(object_at(event, "content_block"))
        elif event.get("type") == "content_block_delta":
            _add(blocks.setdefault(place, {}), object_at(event, "delta"))
    for block in blocks.values():
        if block.get("type") == "tool_use" and (text := block.pop("partial_json", "")):
            block["input"] = text
    return body | {"content": [block for _, block in sorted(blocks.items())]}


def _assistant(message: Mapping[str, Any]) -> Said:
    content = message.get("content")
    if not isinstance(content, list):
        return Said(assistant(text_of(content)))
    texts, thoughts, calls = [], [], []
    approximate = False
    for block in object_list(content, "content"):
        kind = block.get("type")
        if kind == "text":
            texts.append(text_at(block, "text"))
        elif kind == "thinking":
            thoughts.append(text_at(block, "thinking"))
        elif kind == "tool_use":
            approximate |= not isinstance(block.get("input"), str)
            calls.append(call(text_at(block, "name"), block.get("input"), text_at(block, "id")))
        else:
            approximate = True
    return Said(assistant("".join(texts), calls, reasoning="".join(thoughts)), approximate)


def _add(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    key = _DELTAS.get(text_at(delta, "type"))
    if key:
        block[key] = text_at(block, key) + text_at(delta, key)
