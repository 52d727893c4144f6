"""Observations of Langfuse: exports, traces with their observations, pages of its API, and the batches of its clients.

Source: Langfuse's API reference (Observation, TraceWithFullDetails, ingestion) and its documentation of exports. An
observation of `type` GENERATION holds the messages before the answer in `input` (a list, or an object with `messages`
and `tools`) and the answer in `output` (a message, a body or a text), each as a value or as its JSON text. A batch has
`generation-create` and `generation-update` events, whose bodies are parts of one. Observations that are no model's are
passed by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Call, Setting
from agentspec.replay.readers.any_message import read_answer, read_prompt
from agentspec.replay.readers.base import Format, Item, Record, name_at, object_at, objects, parsed, rows

_LISTS = ("observations", "data")
_GENERATION = ("generation-create", "generation-update")


def read(record: Record) -> Iterator[Item]:
    """The calls of an observation, or of all in a trace, a page or a batch.

    Raises:
        TraceError: It can't be used.
    """
    if _is_observation(record.value):
        yield from _observation(record, record.value, "")
        return
    for observation in _observations(record.value):
        try:
            yield from _observation(record, observation, name_at(record.value, "id"))
        except TraceError as error:
            yield record.skipped(f"an observation: {error}")


def _observations(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    for key in _LISTS:
        if key in value:
            return objects(value, key)
    found: dict[str, dict[str, Any]] = {}
    for event in objects(value, "batch"):
        if event.get("type") in _GENERATION:
            body = object_at(event, "body")
            run = found.setdefault(name_at(body, "id"), {"type": "GENERATION"})
            run |= {key: each for key, each in body.items() if each is not None}
    return list(found.values())


def _observation(record: Record, observation: Mapping[str, Any], trace: str) -> Iterator[Item]:
    if str(observation.get("type")).upper() != "GENERATION":
        return
    prompt, answer = parsed(observation.get("input")), parsed(observation.get("output"))
    if not prompt or not answer:
        raise TraceError("it has no input or no output")
    messages, setting = read_prompt(prompt)
    yield Call(
        file=record.file,
        line=record.line,
        trace_id=name_at(observation, "traceId", "trace_id") or trace or f"line {record.line}",
        messages=messages,
        answer=read_answer(answer),
        setting=Setting(
            tools=setting.tools, schema=setting.schema, model=name_at(observation, "model") or setting.model
        ),
    )


def _is_observation(value: object) -> bool:
    kind = value.get("type") if isinstance(value, dict) else None
    known = (
        "GENERATION",
        "SPAN",
        "EVENT",
        "AGENT",
        "TOOL",
        "CHAIN",
        "RETRIEVER",
        "EVALUATOR",
        "EMBEDDING",
        "GUARDRAIL",
    )
    return (
        isinstance(value, dict)
        and isinstance(kind, str)
        and kind.upper() in known
        and bool({"input", "output"} & value.keys())
    )


def _recognises(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    if _is_observation(value):
        return True
    batch = value.get("batch")
    if isinstance(batch, list):
        return any(isinstance(event, dict) and event.get("type") in _GENERATION for event in batch)
    return any(isinstance(value.get(key), list) and any(map(_is_observation, value[key])) for key in _LISTS)


FORMAT = Format(
    "Langfuse",
    "observations of Langfuse: exports, traces, pages of its API, batches of its clients",
    "type GENERATION and its like with input or output; or observations, data or batch with such",
    _recognises,
    rows(read),
)
