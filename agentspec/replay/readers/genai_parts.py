"""Messages of parts, as OpenTelemetry's GenAI conventions and Google's Content have them.

Source: OpenTelemetry's semantic conventions for generative AI, the JSON schemas of input and output messages: `{"role",
"parts": [{"type": "text", "content"}, {"type": "tool_call", "id", "name", "arguments"}, {"type": "tool_call_response",
"id", "response"}, {"type": "reasoning", "content"}]}`; and Google's Gen AI API, Content: parts that are `{"text"}`,
with `thought` where it is one, `{"functionCall": {"name", "args"}}` and `{"functionResponse": {"name", "response"}}`,
in either spelling of the names. Arguments are objects in most of them: the model's white space is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentspec.replay.conversations import Said
from agentspec.replay.readers.base import object_at, objects, text_at
from agentspec.replay.readers.messages import assistant, call, content_of, tool_result

_ROLES = {"model": "assistant", "assistant": "assistant", "system": "system", "developer": "system", "tool": "user"}
_SPELLINGS = {"functionCall": "function_call", "functionResponse": "function_response"}


def read_message(message: Mapping[str, Any]) -> list[Said]:
    """The messages that one message is: the results of tools in it become messages of their own.

    Raises:
        TraceError: It can't be used.
    """
    role = _ROLES.get(text_at(message, "role"), "user")
    parts = [_spelled(part) for part in objects(message, "parts")]
    if role == "assistant":
        return [_assistant(parts)]
    found = [Said(result) for part in parts if (result := _result(part)) is not None]
    rest = [_their(part) for part in parts if _result(part) is None]
    return [*found, Said({"role": role, "content": content_of(rest)})] if rest or not found else found


def _spelled(part: Mapping[str, Any]) -> dict[str, Any]:
    return {_SPELLINGS.get(key, key): value for key, value in part.items()}


def _result(part: Mapping[str, Any]) -> dict[str, Any] | None:
    """The message of a tool's result; None: the part is none."""
    if part.get("type") == "tool_call_response":
        return tool_result(text_at(part, "id"), part.get("response", part.get("result")))
    if "function_response" in part:
        response = object_at(part, "function_response")
        return tool_result(text_at(response, "id"), response.get("response"), text_at(response, "name"))
    return None


def _their(part: Mapping[str, Any]) -> dict[str, Any]:
    """A part in OpenAI's form; any other than a text as it is."""
    text = part.get("content", part.get("text"))
    return {"type": "text", "text": text} if isinstance(text, str) else dict(part)


def _assistant(parts: list[dict[str, Any]]) -> Said:
    texts, thoughts, calls = [], [], []
    approximate = False
    for part in parts:
        kind, text = part.get("type"), part.get("content", part.get("text"))
        if kind == "tool_call":
            approximate |= not isinstance(part.get("arguments"), str)
            calls.append(call(text_at(part, "name"), part.get("arguments"), text_at(part, "id")))
        elif "function_call" in part:
            made = object_at(part, "function_call")
            approximate = True
            calls.append(call(text_at(made, "name"), made.get("args"), text_at(made, "id")))
        elif isinstance(text, str) and (kind in ("reasoning", "thinking") or part.get("thought") is True):
            thoughts.append(text)
        elif isinstance(text, str) and kind in ("text", None):
            texts.append(text)
        else:
            approximate = True
    return Said(assistant("".join(texts), calls, reasoning="".join(thoughts)), approximate)
