"""Tasks of the Berkeley Function Calling Leaderboard: `{"question", "function", "ground_truth"}`.

Source: ShishirPatil/gorilla, `berkeley-function-call-leaderboard`. No answer of a model is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.categories import Category
from agentspec.replay.readers.base import Format, Record, has_keys, objects, rows
from agentspec.replay.readers.tasks import task
from agentspec.replay.turns import Turn

_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}
_NESTED = ("items", "additionalProperties")
_NESTED_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")


def read(record: Record) -> Iterator[Turn]:
    """The first turn of the question, whose answer must call tools: what later turns follow on is not recorded.

    Raises:
        TraceError: The row can't be used.
    """
    question = record.value["question"]
    first = question[0] if isinstance(question, list) and question else None
    if not isinstance(first, list) or not first or not all(isinstance(message, dict) for message in first):
        raise TraceError("question is not a list of turns that begins with a list of messages")
    functions = objects(record.value, "function")
    if not functions:
        raise TraceError("function is missing or empty")
    tools = tuple(_tool(function, place) for place, function in enumerate(functions))
    yield task(record, tuple(first), Category.TOOL_CALL, tools=tools)


def _tool(function: Mapping[str, Any], place: int) -> dict[str, Any]:
    parameters = function.get("parameters")
    if not isinstance(parameters, dict):
        raise TraceError(f"function[{place}].parameters is not an object")
    return {"type": "function", "function": {**function, "parameters": json_schema(parameters)}}


def json_schema(doc: Mapping[str, Any]) -> dict[str, Any]:
    """A function doc's schema as JSON Schema: its Python names of types replaced, at every depth.

    `any` allows every value; all other keywords stay as they are, to be enforced or refused like anyone's.
    """
    schema = dict(doc)
    if isinstance(schema.get("type"), str) and schema["type"] in _TYPES:
        kind = _TYPES[schema.pop("type")]
        schema = ({"type": kind} if kind else {}) | schema
    if isinstance(schema.get("properties"), dict):
        named = schema["properties"].items()
        schema["properties"] = {name: json_schema(each) if isinstance(each, dict) else each for name, each in named}
    for key in _NESTED:
        if isinstance(schema.get(key), dict):
            schema[key] = json_schema(schema[key])
    for key in _NESTED_LISTS:
        if isinstance(schema.get(key), list):
            schema[key] = [json_schema(each) if isinstance(each, dict) else each for each in schema[key]]
    return schema


FORMAT = Format(
    "BFCL",
    "tasks of the Berkeley Function Calling Leaderboard",
    "question and function",
    has_keys("question", "function"),
    rows(read),
)
