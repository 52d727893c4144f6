"""Spans of OpenTelemetry, by whichever convention they hold a model's messages.

Source: the OTLP specification, JSON encoding (`resourceSpans`, `scopeSpans`, `spans`, attributes as lists of `key` and
`value`), as collectors' file exporters write it, one object a line; `resourceLogs` for messages that are logged as
events; and spans, or the attributes of one, as plain objects, as exporters of tracing tools write them. What a span's
attributes mean is read by OpenTelemetry's own conventions (`genai_attributes`) or by OpenInference's (`openinference`).
Spans that are no model's are passed by; a model's span without its messages is skipped, since the tracer was told to
leave them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Call
from agentspec.replay.readers import genai_attributes, openinference
from agentspec.replay.readers.base import Format, Item, Record, name_at, object_at, objects, parsed, rows

_VALUES = ("stringValue", "boolValue", "doubleValue", "string_value", "bool_value", "double_value")
_INTEGERS = ("intValue", "int_value")
_PREFIX = "attributes."
_WHOLE = frozenset({"gen_ai.client.inference.operation.details"})
"""Events whose attributes are those of the call."""

_LAYERS = (
    ("resourceSpans", "scopeSpans", "spans"),
    ("resource_spans", "scope_spans", "spans"),
    ("resourceLogs", "scopeLogs", "logRecords"),
)


def read(record: Record) -> Iterator[Item]:
    """The calls of the spans in a record.

    Raises:
        TraceError: It can't be used.
    """
    layers = next((layers for layers in _LAYERS if layers[0] in record.value), None)
    if layers is None:
        yield from _calls(record, record.value)
        return
    leaves = [
        leaf
        for resource in objects(record.value, layers[0])
        for scope in objects(resource, layers[1])
        for leaf in objects(scope, layers[2])
    ]
    for span in leaves if layers[2] == "spans" else _spans_of_logs(leaves):
        try:
            yield from _calls(record, span)
        except TraceError as error:
            yield record.skipped(f"a span: {error}")


def _spans_of_logs(logs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Logged events by the span that they belong to."""
    spans: dict[str, dict[str, Any]] = {}
    for log in logs:
        name = name_at(log, "spanId", "span_id") or str(len(spans))
        span = spans.setdefault(name, {"traceId": name_at(log, "traceId", "trace_id"), "attributes": [], "events": []})
        span["events"].append(log)
    return list(spans.values())


def _calls(record: Record, span: Mapping[str, Any]) -> Iterator[Call]:
    events = [_event(event) for event in objects(span, "events")]
    attributes = _plain(span.get("attributes", span))
    for name, fields in events:
        attributes |= fields if name in _WHOLE else {}
    context = object_at(span, "context") or object_at(span, "spanContext")
    name = name_at(attributes, "gen_ai.conversation.id", "session.id")
    name = name or name_at(span, "traceId", "trace_id") or name_at(context, "trace_id", "traceId")
    for found in (openinference.read(attributes), genai_attributes.read(attributes, events)):
        if found:
            messages, answer, setting = found
            yield Call(
                file=record.file,
                line=record.line,
                trace_id=name or f"line {record.line}",
                messages=messages,
                answer=answer,
                setting=setting,
            )
            return


def _event(event: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """An event's name, and its attributes with its body."""
    fields = _plain(event.get("attributes"))
    body = parsed(_value(event.get("body")))
    return name_at(event, "name", "eventName") or name_at(fields, "event.name"), fields | (
        body if isinstance(body, dict) else {}
    )


def _plain(attributes: object) -> dict[str, Any]:
    if isinstance(attributes, dict):
        return {str(key).removeprefix(_PREFIX): value for key, value in attributes.items()}
    if not isinstance(attributes, list):
        return {}
    pairs = [each for each in attributes if isinstance(each, dict) and isinstance(each.get("key"), str)]
    return {each["key"].removeprefix(_PREFIX): _value(each.get("value")) for each in pairs}


def _value(value: object) -> Any:  # noqa: ANN401
    """An OTLP value as a plain one."""
    if not isinstance(value, dict):
        return value
    for key in _INTEGERS:
        if isinstance(number := value.get(key), int | str) and str(number).lstrip("-").isdigit():
            return int(number)
    for key in ("arrayValue", "array_value"):
        if isinstance(value.get(key), dict):
            return [_value(each) for each in _list(value[key].get("values"))]
    for key in ("kvlistValue", "kvlist_value"):
        if isinstance(value.get(key), dict):
            return _plain(_list(value[key].get("values")))
    return next((value[key] for key in _VALUES if key in value), value)


def _list(value: object) -> Iterable[Any]:
    return value if isinstance(value, list) else ()


def _recognises(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    if any(isinstance(value.get(layers[0]), list) for layers in _LAYERS):
        return True
    names = _plain(value.get("attributes", value))
    if "attributes" in value and any(key in value for key in ("traceId", "trace_id", "context", "spanId", "span_id")):
        return True
    return any(name.startswith(("gen_ai.", "llm.", "openinference.")) for name in names)


FORMAT = Format(
    "OpenTelemetry",
    "spans and events with messages, by the GenAI conventions or OpenInference's, in OTLP JSON or plain",
    "resourceSpans or resourceLogs; or attributes that begin with gen_ai., llm. or openinference.",
    _recognises,
    rows(read),
)
