"""Messages as clients send them, checked and brought into the one shape that templates are given."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentspec.errors import PromptError, check_text

_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def read_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """OpenAI's messages with plain text as content, `developer` as `system`, and arguments as mappings.

    Text parts are joined as they are; missing content counts as empty, and so do missing arguments. What a template may
    want besides (`name`, `tool_call_id`) is kept.

    Raises:
        PromptError: There is no message, or one can't be used; the text names `messages[i]`.
    """
    if not messages:
        raise PromptError("messages must hold at least one message: messages[0] is missing")
    return [_read(message, f"messages[{index}]") for index, message in enumerate(messages)]


def _read(message: object, place: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise PromptError(f"{place} must be a mapping with role and content, not {message!r}")
    role = _ROLES.get(str(message.get("role")))
    if role is None:
        raise PromptError(f"{place}: the role must be one of {', '.join(_ROLES)}, not {message.get('role')!r}")
    content = _text(message.get("content"), place)
    check_text(content, f"{place}.content", PromptError)
    read = {**message, "role": role, "content": content}
    if read.pop("function_call", None):
        raise PromptError(f"{place}.function_call is not supported: tell the call in tool_calls")
    calls = read.pop("tool_calls", None)
    if calls:
        read["tool_calls"] = [_call(call, f"{place}.tool_calls[{i}]") for i, call in enumerate(calls)]
    return read


def _text(content: object, place: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, Sequence):
        raise PromptError(f"{place}: content must be text or a list of text parts, not {content!r}")
    return "".join(_part(part, f"{place}.content[{index}]") for index, part in enumerate(content))


def _part(part: object, place: str) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else None
    if not isinstance(text, str):
        kind = part.get("type") if isinstance(part, Mapping) else part
        raise PromptError(f"{place}: only text parts can be read, not {kind!r}")
    return text


def _call(call: object, place: str) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise PromptError(f"{place} must be a call with a function and its name, not {call!r}")
    # Nothing besides: some templates show a call as it stands, and clients send their own notes with it.
    named = {"name": function["name"], "arguments": _arguments(function.get("arguments"))}
    read = {"type": "function", "function": named}
    return {"id": call["id"], **read} if "id" in call else read


def _arguments(given: object) -> object:
    """As templates want them: a mapping, in the order written. What is no JSON object stays as it is."""
    if given is None or given == "":
        return {}
    try:
        value = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return given
    return dict(value) if isinstance(value, Mapping) else given


def fold_turns(messages: Sequence[Mapping[str, Any]], *, system: bool) -> list[dict[str, Any]]:
    """The messages for a template that is strict about roles, with every text kept, in order.

    A system turn that is not the first becomes part of the user's turns; turns of one role in a row become one, their
    texts a blank line apart.

    Args:
        messages: From `read_messages`, with system, user and assistant turns only.
        system: Whether the first turn may stay a system turn.
    """
    folded: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        turn = dict(message)
        if turn["role"] == "system" and (index or not system):
            turn["role"] = "user"
        if folded and folded[-1]["role"] == turn["role"]:
            folded[-1]["content"] = "\n\n".join(filter(None, (folded[-1]["content"], turn["content"])))
        else:
            folded.append(turn)
    return folded
