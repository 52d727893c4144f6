"""Answers of ToolBench.

Source: OpenBMB/ToolBench, `data_example/answer`: `answer_generation` holds `function` (OpenAI's legacy functions, with
keys that are no JSON Schema) and `train_messages`, growing beginnings of the conversations of a search tree, with
legacy `function_call` and messages of role `function`. A list that goes on in a later one is left to that one, so every
branch of the search is one conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Setting, Transcript
from agentspec.replay.readers.base import Format, Item, Record, name_at, object_at, object_list, objects, rows
from agentspec.replay.readers.messages import as_tools, openai_said

_NO_SCHEMA = frozenset({"optional", "example_value"})


def read(record: Record) -> Iterator[Item]:
    """The conversations of one search.

    Raises:
        TraceError: It can't be used.
    """
    found = object_at(record.value, "answer_generation")
    tools = as_tools([_function(function) for function in objects(found, "function")])
    lists = found.get("train_messages")
    if not isinstance(lists, list) or not lists:
        raise TraceError("train_messages is missing or empty")
    branches = [object_list(messages, f"train_messages[{place}]") for place, messages in enumerate(lists)]
    seen: list[list[dict[str, Any]]] = []
    for place, messages in enumerate(branches):
        others = [*branches[place + 1 :], *seen]
        if messages in seen or any(_begins(messages, other) for other in others):
            continue
        name = name_at(record.value, "query_id", "id") or f"line {record.line}"
        name += f" branch {len(seen) + 1}" if seen else ""
        shared = max((_shared(messages, one) for one in seen), default=0)
        branch, setting = _branch(messages, shared), Setting(tools=tools)
        yield from branch.conversation(record.file, record.line, name, setting=setting)
        seen.append(messages)


def _branch(messages: list[dict[str, Any]], shared: int) -> Transcript:
    """A branch; what it shares with an earlier one is prompt only."""
    transcript = Transcript()
    transcript.extend([openai_said(message) for message in messages[:shared]], target=False)
    transcript.extend([openai_said(message) for message in messages[shared:]])
    return transcript


def _begins(messages: list[dict[str, Any]], other: list[dict[str, Any]]) -> bool:
    return len(messages) < len(other) and other[: len(messages)] == messages


def _shared(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> int:
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _function(function: Mapping[str, Any]) -> dict[str, Any]:
    return {**function, "parameters": _schema(function.get("parameters"))}


def _schema(value: object) -> Any:  # noqa: ANN401
    """Without the keys that are no JSON Schema; a property may be called like one of them."""
    if not isinstance(value, dict):
        return value
    kept = {key: each for key, each in value.items() if key not in _NO_SCHEMA}
    if isinstance(properties := kept.get("properties"), dict):
        kept["properties"] = {name: _schema(each) for name, each in properties.items()}
    return kept


FORMAT = Format(
    "ToolBench",
    "answers of ToolBench's searches",
    "answer_generation",
    lambda value: isinstance(value, dict) and isinstance(value.get("answer_generation"), dict),
    rows(read),
)
