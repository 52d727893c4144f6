"""OpenAI messages made of other formats' pieces, so that all of them are made alike."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Said, Setting
from agentspec.replay.readers.base import name_at, object_at, objects

_TOOL_KEYS = ("name", "description", "parameters", "strict")
_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")


def call(name: str, arguments: object, call_id: str = "") -> dict[str, Any]:
    """A tool call; arguments that are no text are written in Python's usual white space."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": written(arguments)}}


def written(arguments: object) -> str:
    """Arguments as a text: as they are, or as JSON where they were recorded as a value."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)


def assistant(text: str, calls: Sequence[Mapping[str, Any]] = (), *, reasoning: str = "") -> dict[str, Any]:
    """A model's message."""
    message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
    if reasoning:
        message["reasoning_content"] = reasoning
    return message | ({"tool_calls": list(calls)} if calls else {})


def tool_result(call_id: str, content: object, name: str = "") -> dict[str, Any]:
    """What a tool answered."""
    found: dict[str, Any] = {"role": "tool", "tool_call_id": call_id, "content": content_of(content)}
    return found | ({"name": name} if name else {})


def content_of(content: object) -> Any:  # noqa: ANN401
    """A message's content: a text, or a list of parts where there are several, or others than texts.

    A value that is neither is written as JSON.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list) or not all(isinstance(part, dict | str) for part in content):
        return json.dumps(content, ensure_ascii=False)
    parts = [{"type": "text", "text": part} if isinstance(part, str) else _part(part) for part in content]
    if not parts:
        return ""
    return parts[0]["text"] if len(parts) == 1 and _is_text(parts[0]) else parts


def text_of(content: object) -> str:
    """The texts of a content, joined; parts that are none are left out."""
    found = content_of(content)
    return found if isinstance(found, str) else "".join(part["text"] for part in found if _is_text(part))


def as_tools(items: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The functions among tools of any API, in OpenAI's form; tools that a provider runs itself are left out."""
    return tuple(tool for item in items if (tool := _tool(item)) is not None)


def schema_of(response_format: object) -> Mapping[str, Any] | None:
    """The schema that a response format of OpenAI's holds the answer to; None: none, the answer is text.

    Raises:
        TraceError: It is of another form.
    """
    if response_format is None:
        return None
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    if kind == "text":
        return None
    if isinstance(response_format, dict) and kind == "json_object":
        return {"type": "object"}
    wrapped = response_format.get("json_schema") if isinstance(response_format, dict) else None
    schema = wrapped.get("schema") if kind == "json_schema" and isinstance(wrapped, dict) else None
    if not isinstance(schema, dict):
        raise TraceError("response_format is not of type text, json_object or json_schema with a schema")
    return schema


def setting_of(body: Mapping[str, Any], held: Mapping[str, Any]) -> Setting:
    """The tools and the model of a request's body, and the schema of what holds its answer.

    Args:
        body: Of the request.
        held: A flat format, `{"type": "json_schema", "schema": ...}`; any other holds the answer to nothing.

    Raises:
        TraceError: The tools can't be used.
    """
    schema = held.get("schema") if held.get("type") == "json_schema" else None
    return Setting(
        tools=as_tools(objects(body, "tools")),
        schema=schema if isinstance(schema, dict) else None,
        model=name_at(body, "model"),
    )


def openai_said(message: Mapping[str, Any]) -> Said:
    """A message in OpenAI's form, as it is where it can be.

    The legacy `function_call` and role `function` become a call and its result, and arguments that were recorded as an
    object a text: approximate.

    Raises:
        TraceError: Its content or its calls are of another form.
    """
    if not isinstance(message.get("content"), str | list | None):
        raise TraceError("a message's content is neither a text nor a list of parts")
    if message.get("role") == "function":
        return Said({**message, "role": "tool", "tool_call_id": ""})
    legacy = object_at(message, "function_call")
    if legacy:
        rest = {key: value for key, value in message.items() if key != "function_call"}
        made = call(_name(legacy), legacy.get("arguments"))
        return Said({**rest, "tool_calls": [made]}, approximate=not isinstance(legacy.get("arguments"), str))
    calls = objects(message, "tool_calls")
    functions = [object_at(each, "function") for each in calls]
    if not any(isinstance(function.get("arguments"), dict | list) for function in functions):
        return Said(message)
    made_calls = [
        {**each, "function": {**function, "arguments": written(function.get("arguments"))}}
        for each, function in zip(calls, functions, strict=True)
    ]
    return Said({**message, "tool_calls": made_calls}, approximate=True)


def _name(row: Mapping[str, Any]) -> str:
    name = row.get("name")
    if not isinstance(name, str) or not name:
        raise TraceError("a call has no name")
    return name


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    """A text part of any API in OpenAI's form; any other part as it is."""
    if part.get("type") in ("text", "input_text", "output_text", None) and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    return dict(part)


def _is_text(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "text" and isinstance(part.get("text"), str)


def _tool(item: Mapping[str, Any]) -> dict[str, Any] | None:
    function = item.get("function")
    if isinstance(function, dict):
        return dict(item)
    schema = next((item[key] for key in _SCHEMA_KEYS if isinstance(item.get(key), dict)), None)
    if not isinstance(item.get("name"), str) or (schema is None and item.get("type") not in (None, "function")):
        return None
    kept = {key: item[key] for key in _TOOL_KEYS if key in item}
    return {"type": "function", "function": {**kept, "parameters": schema or {"type": "object", "properties": {}}}}
