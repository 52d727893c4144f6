"""Items of `/v1/responses`, read into the messages that a chat is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentspec.errors import PromptError, check_text
from agentspec.server.problems import bad_request

_ROLES = ("user", "assistant", "system", "developer")
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}


def read_items(earlier: Iterable[object], given: Iterable[object]) -> list[dict[str, Any]]:
    """A conversation as OpenAI's chat messages.

    What the assistant thought, said and called in one answer is one message, as it is in chats, so that both ways of
    telling it give one prompt. Of reasoning, the text is kept; summaries and what is encrypted are not.

    Args:
        earlier: Items of the responses before this one.
        given: Items of the request.

    Raises:
        Problem: An item can't be used; its `param` is `input[i]`, or a field of it.
    """
    reader = _Reader()
    for item in earlier:
        reader.add(item, "previous_response_id")
    for index, item in enumerate(given):
        reader.add(item, f"input[{index}]")
    return reader.messages


class _Reader:
    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._names: dict[str, str] = {}
        self._thoughts = ""

    def add(self, item: object, place: str) -> None:
        if not isinstance(item, Mapping):
            raise bad_request(f"{place} must be an object, not a {type(item).__name__}", place)
        match item.get("type") or "message":
            case "message":
                self._message(item, place)
            case "function_call":
                self._call(item, place)
            case "function_call_output":
                self._output(item, place)
            case "reasoning":
                self._thoughts += _thoughts(item.get("content"))
            case kind:
                known = "message, function_call, function_call_output and reasoning"
                raise bad_request(f"{place}: items of type {kind!r} can't be read, only {known}", f"{place}.type")

    def _message(self, item: Mapping[str, Any], place: str) -> None:
        role, text = item.get("role"), _text(item.get("content"), f"{place}.content")
        if role not in _ROLES:
            raise bad_request(f"{place}: the role must be one of {', '.join(_ROLES)}, not {role!r}", f"{place}.role")
        if role == "assistant":
            self._turn(said=text)["content"] = text
        else:
            self.messages.append({"role": role, "content": text})

    def _call(self, item: Mapping[str, Any], place: str) -> None:
        id, name = _string(item, "call_id", place), _string(item, "name", place)
        arguments = _string(item, "arguments", place)
        self._names[id] = name
        call = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        self._turn().setdefault("tool_calls", []).append(call)

    def _output(self, item: Mapping[str, Any], place: str) -> None:
        id = _string(item, "call_id", place)
        if id not in self._names:
            raise bad_request(f"{place}: no function_call before it has the call_id {id!r}", f"{place}.call_id")
        text = _text(item.get("output"), f"{place}.output")
        self.messages.append({"role": "tool", "tool_call_id": id, "name": self._names[id], "content": text})

    def _turn(self, *, said: str = "") -> dict[str, Any]:
        """The assistant's message that goes on, or a new one: what it says twice, or thinks anew, is a turn apart."""
        last = self.messages[-1] if self.messages else {}
        if last.get("role") != "assistant" or self._thoughts or (said and last["content"]):
            last = {"role": "assistant", "content": ""}
            if self._thoughts:
                last["reasoning_content"], self._thoughts = self._thoughts, ""
            self.messages.append(last)
        return last


def _string(item: Mapping[str, Any], field: str, place: str) -> str:
    value = item.get(field)
    if not isinstance(value, str):
        raise bad_request(f"{place}.{field} must be a text, not {type(value).__name__}", f"{place}.{field}")
    return _checked(value, f"{place}.{field}")


def _text(content: object, place: str) -> str:
    """The text of some content, which is one, or parts that are joined as they are."""
    if content is None or isinstance(content, str):
        return _checked(content or "", place)
    if not isinstance(content, list):
        raise bad_request(f"{place} must be a text or a list of parts, not a {type(content).__name__}", place)
    return "".join(_part(part, f"{place}[{index}]") for index, part in enumerate(content))


def _part(part: object, place: str) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    text = part.get(_TEXTS.get(str(kind), "")) if isinstance(part, Mapping) else None
    if not isinstance(text, str):
        raise bad_request(f"{place}: only parts of text can be read, not {kind!r}", place)
    return _checked(text, place)


def _checked(text: str, place: str) -> str:
    try:
        check_text(text, place, PromptError)
    except PromptError as error:
        raise bad_request(str(error), place) from None
    return text


def _thoughts(content: object) -> str:
    """What a reasoning item tells in the open, if anything."""
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "".join(text for text in texts if isinstance(text, str))
