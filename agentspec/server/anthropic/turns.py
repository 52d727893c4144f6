"""Anthropic's messages, brought into OpenAI's shape, which the engine reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentspec.errors import PromptError, check_text
from agentspec.server.problems import bad_request

Turn = dict[str, Any]

_BILLING = "x-anthropic-billing-header:"
_ROLES = ("user", "assistant", "system")


def read_turns(system: object, messages: Sequence[object]) -> list[Turn]:
    """The conversation, `system` first. Texts of one turn are a line apart.

    A line for Anthropic's accounts, which Claude Code puts before the system prompt and changes with each request, is
    left out: it is nothing for a model to read, and no request could begin like the one before. So are thoughts that
    only Anthropic's servers can decrypt.

    Args:
        system: Text or text blocks; None or empty: none.
        messages: At least one.

    Raises:
        Problem: One can't be used; the text names `messages[i]`, or `system`.
        PromptError: One holds what is not text.
    """
    turns: list[Turn] = []
    if said := _without_billing(_texts(system or "", "system")):
        turns.append({"role": "system", "content": said})
    names: dict[str, str] = {}
    for index, message in enumerate(messages):
        turns += _read(message, f"messages[{index}]", names)
    if turns[-1]["role"] == "assistant":
        place = f"messages[{len(messages) - 1}]"
        raise bad_request(f"{place}: an answer can't be begun for the model: end with a turn of the user's", place)
    return turns


def _without_billing(text: str) -> str:
    return text.partition("\n")[2].lstrip("\n") if text.startswith(_BILLING) else text


def _read(message: object, place: str, names: dict[str, str]) -> list[Turn]:
    role = message.get("role") if isinstance(message, Mapping) else None
    if not isinstance(message, Mapping) or role not in _ROLES:
        raise bad_request(f"{place}: the role must be one of {', '.join(_ROLES)}, not {role!r}", place)
    content = message.get("content")
    if role == "system":
        return [{"role": "system", "content": _texts(content, place)}]
    blocks = _blocks(content, place)
    return [_assistant(blocks, names)] if role == "assistant" else _user(blocks, names)


def _user(blocks: Sequence[tuple[Mapping[str, Any], str]], names: Mapping[str, str]) -> list[Turn]:
    """Results of tools and texts, in their order, texts in a row as one turn."""
    turns: list[Turn] = []
    for block, place in blocks:
        if block.get("type") == "tool_result":
            turns.append(_result(block, place, names))
        elif turns and turns[-1]["role"] == "user":
            turns[-1]["content"] += f"\n{_text(block, place)}"
        else:
            turns.append({"role": "user", "content": _text(block, place)})
    return turns or [{"role": "user", "content": ""}]


def _result(block: Mapping[str, Any], place: str, names: Mapping[str, str]) -> Turn:
    """The result of a call; one that is an error says so, as models are told it in words only."""
    call = block.get("tool_use_id")
    if not isinstance(call, str):
        raise bad_request(f"{place}: a tool_result needs the tool_use_id of its call, not {call!r}", place)
    said = _texts(block.get("content") or "", place)
    named = {"name": names[call]} if call in names else {}
    return {
        "role": "tool",
        "tool_call_id": call,
        "content": f"Error: {said}" if block.get("is_error") else said,
        **named,
    }


def _assistant(blocks: Sequence[tuple[Mapping[str, Any], str]], names: dict[str, str]) -> Turn:
    texts, thoughts, calls = list[str](), list[str](), list[Turn]()
    for block, place in blocks:
        match block.get("type"):
            case "thinking":
                thoughts.append(_string(block, "thinking", place))
            case "redacted_thinking":
                continue
            case "tool_use":
                calls.append(_call(block, place))
                names[calls[-1]["id"]] = calls[-1]["function"]["name"]
            case _:
                texts.append(_text(block, place))
    turn: Turn = {"role": "assistant", "content": "\n".join(texts)}
    if thoughts:
        turn["reasoning_content"] = "\n".join(thoughts)
    if calls:
        turn["tool_calls"] = calls
    return turn


def _call(block: Mapping[str, Any], place: str) -> Turn:
    arguments = block.get("input")
    if not isinstance(arguments, Mapping):
        raise bad_request(f"{place}: the input of a tool_use must be an object, not {arguments!r}", place)
    text = json.dumps(arguments, ensure_ascii=False)
    check_text(text, place, PromptError)
    function = {"name": _string(block, "name", place), "arguments": text}
    return {"id": _string(block, "id", place), "type": "function", "function": function}


def _texts(content: object, place: str) -> str:
    """Text that is given as such or in text blocks."""
    return "\n".join(_text(block, where) for block, where in _blocks(content, place))


def _blocks(content: object, place: str) -> list[tuple[Mapping[str, Any], str]]:
    """Blocks of content, and where each is."""
    if isinstance(content, str):
        return [({"type": "text", "text": content}, place)]
    if not isinstance(content, list):
        raise bad_request(f"{place}: content must be text or a list of blocks, not {content!r}", place)
    places = [f"{place}.content[{index}]" if place != "system" else f"system[{index}]" for index in range(len(content))]
    for block, where in zip(content, places, strict=True):
        if not isinstance(block, Mapping):
            raise bad_request(f"{where} must be a block with a type, not {block!r}", where)
    return list(zip(content, places, strict=True))


def _text(block: Mapping[str, Any], place: str) -> str:
    if block.get("type") != "text":
        raise bad_request(f"{place}: a block of type {block.get('type')!r} can't be read here: give text", place)
    return _string(block, "text", place)


def _string(block: Mapping[str, Any], key: str, place: str) -> str:
    value = block.get(key)
    if not isinstance(value, str):
        raise bad_request(f"{place}: {key} must be a text, not {value!r}", place)
    check_text(value, place, PromptError)
    return value
