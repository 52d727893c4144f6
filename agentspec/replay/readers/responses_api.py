"""OpenAI's Responses: items of a request and of its answer, whole or streamed.

Source: OpenAI's API reference, Responses. The history is a list of items: `message` (with `input_text` and
`output_text` parts), `reasoning`, `function_call` with its arguments as a text, `function_call_output`, and others. The
items that a model wrote in a row are one message. A call of a custom tool holds free text; it becomes a call with that
text as `{"input": ...}`, which is approximate, as is a message with an item of a tool that ran at the provider, or with
a thought of which there is no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Message, Said, Setting
from agentspec.replay.readers.base import object_at, object_list, objects, text_at
from agentspec.replay.readers.messages import assistant, call, content_of, setting_of, text_of, tool_result

CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "tool_search_call": "arguments",
}
"""Items that are calls, and where their arguments are."""

OUTPUTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output"}
)
"""Items that are tools' results."""


_KINDS = frozenset({"reasoning", *CALLS, *OUTPUTS})


def is_item(value: object) -> bool:
    """Whether a value is an item that only this API has."""
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str):
        return False
    if kind != "message" or not isinstance(value.get("role"), str):
        return kind in _KINDS
    content = value.get("content")
    parts = content if isinstance(content, list) else []
    kinds = [str(part.get("type")) for part in parts if isinstance(part, dict)]
    return isinstance(content, str) or any(each.startswith(("input_", "output_")) for each in kinds)


def request(body: Mapping[str, Any], history: Sequence[Message] = ()) -> tuple[tuple[Message, ...], Setting]:
    """The messages of a request, its instructions first, and its tools, schema and model.

    Args:
        body: Of the request.
        history: What `previous_response_id` stands for, without instructions.

    Raises:
        TraceError: It can't be used.
    """
    asked = [*history, *(said.message for said in read_items(_input(body.get("input"))))]
    if instructions := body.get("instructions"):
        asked.insert(0, {"role": "system", "content": content_of(instructions)})
    if not asked:
        raise TraceError("input is missing or empty")
    held = object_at(object_at(body, "text"), "format")
    return tuple(asked), setting_of(body, held)


def answer(body: Mapping[str, Any]) -> Said:
    """The message that a model answered with.

    Raises:
        TraceError: It can't be used.
    """
    said = read_items(objects(body, "output"))
    if len(said) != 1 or said[0].message.get("role") != "assistant":
        raise TraceError("output is empty, or not one answer")
    return said[0]


def read_items(items: Iterable[Mapping[str, Any]]) -> list[Said]:
    """The messages of a list of items.

    Raises:
        TraceError: An item can't be used.
    """
    found: list[Said] = []
    written: list[Mapping[str, Any]] = []
    for item in items:
        theirs = _theirs(item)
        if theirs is None:
            written.append(item)
            continue
        found += _written(written)
        written = []
        found.append(Said(theirs))
    return found + _written(written)


def assembled(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The response that was streamed in events.

    Raises:
        TraceError: It was not ended.
    """
    for event in reversed(events):
        if event.get("type") in ("response.completed", "response.incomplete"):
            return object_at(event, "response")
    raise TraceError("the stream has no end")


def _input(value: object) -> list[dict[str, Any]]:
    return [{"role": "user", "content": value}] if isinstance(value, str) else object_list(value, "input")


def _theirs(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """The message of an item that no model wrote; None: a model wrote it."""
    kind = _kind(item)
    if kind in OUTPUTS:
        output = item.get("output", item.get("tools"))
        return tool_result(text_at(item, "call_id"), output)
    if kind == "message" and item.get("role") != "assistant":
        return {"role": item.get("role"), "content": content_of(item.get("content"))}
    return None


def _written(items: Sequence[Mapping[str, Any]]) -> list[Said]:
    """The one message that these items are; none where they hold nothing."""
    texts, thoughts, calls = [], [], []
    approximate = False
    for item in items:
        kind = _kind(item)
        if kind == "message":
            texts.append(text_of(item.get("content")))
        elif kind == "reasoning":
            thought = _thought(item)
            thoughts.append(thought)
            approximate |= not thought
        elif kind in CALLS:
            made, exact = _call(item, kind)
            calls.append(made)
            approximate |= not exact
        else:
            approximate = True
    if not any(texts) and not calls:
        return []
    return [Said(assistant("".join(texts), calls, reasoning="".join(thoughts)), approximate)]


def _kind(item: Mapping[str, Any]) -> str:
    return text_at(item, "type") or "message"


def _thought(item: Mapping[str, Any]) -> str:
    """The text of a thought: whole where there is one; a summary is not what the model wrote."""
    return "".join(text_at(part, "text") for part in objects(item, "content"))


def _call(item: Mapping[str, Any], kind: str) -> tuple[dict[str, Any], bool]:
    arguments = item.get(CALLS[kind])
    exact = kind == "function_call" and isinstance(arguments, str)
    if kind == "custom_tool_call":
        arguments = {"input": arguments}
    name = text_at(item, "name") or kind.removesuffix("_call")
    return call(name, arguments, text_at(item, "call_id") or text_at(item, "id")), exact
