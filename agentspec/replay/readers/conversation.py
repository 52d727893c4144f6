"""Recorded conversations: `{"trace_id", "tools", "messages", "targets"}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.categories import of_message
from agentspec.replay.turns import Line, Skipped, Turn

KEYS = frozenset({"messages"})


def read(line: Line) -> list[Turn | Skipped]:
    """Each message that a model wrote: `targets` has their indexes, by default every assistant message.

    A `response_format` in OpenAI's form, if there is one, holds the answers that call no tools.

    Raises:
        TraceError: The row can't be used.
    """
    row = line.row
    messages = objects(row, "messages")
    if not messages:
        raise TraceError("messages is missing or empty")
    tools, trace_id = tuple(objects(row, "tools")), row.get("trace_id", f"line {line.number}")
    if not isinstance(trace_id, str):
        raise TraceError("trace_id is not a string")
    schema = _schema(row.get("response_format"))
    found: list[Turn | Skipped] = []
    for index in _targets(row, messages):
        if not index:
            found.append(Skipped(line.file, line.number, "there is no message before it", index))
            continue
        message = messages[index]
        category, called = of_message(message, held=schema is not None), bool(message.get("tool_calls"))
        turn = Turn(trace_id, index, tuple(messages[:index]), tools, line.file, line.number, called, category, schema)
        found.append(turn)
    return found


def objects(row: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The list of objects under a key; empty where there is none.

    Raises:
        TraceError: It is something else.
    """
    items = row.get(key) or []
    if not isinstance(items, list):
        raise TraceError(f"{key} is not a list")
    for place, item in enumerate(items):
        if not isinstance(item, dict):
            raise TraceError(f"{key}[{place}] is not an object")
    return items


def _schema(response_format: object) -> Mapping[str, Any] | None:
    """The schema that a response format holds the answer to; None: none, the answer is text."""
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


def _targets(row: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> list[int]:
    written = [index for index, message in enumerate(messages) if message.get("role") == "assistant"]
    targets = row.get("targets")
    if targets is None:
        targets = written
    if not isinstance(targets, list):
        raise TraceError("targets is not a list")
    for place, target in enumerate(targets):
        if not isinstance(target, int) or isinstance(target, bool) or target not in written:
            raise TraceError(f"targets[{place}] is not the index of an assistant message")
    if not targets:
        raise TraceError("no message is a model's")
    return targets
