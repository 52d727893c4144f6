"""Conversations in the form of Anthropic's Messages API, without the answer's envelope: a request's body as it is kept.

Source: Anthropic's API reference, Messages; see `anthropic_api`. Every assistant message is a model's.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentspec.replay.conversations import Said, Transcript
from agentspec.replay.readers.anthropic_api import has_blocks, read_message, request
from agentspec.replay.readers.base import Format, Item, Record, name_at, objects, rows


def read(record: Record) -> Iterator[Item]:
    """The conversation of one body.

    Raises:
        TraceError: It can't be used.
    """
    messages, setting = request(record.value)
    said = [each for message in objects(record.value, "messages") for each in read_message(message)]
    transcript = Transcript()
    if len(messages) > len(said):
        transcript.add(Said(messages[0]))
    transcript.extend(said)
    trace_id = name_at(record.value, "trace_id", "id") or f"line {record.line}"
    yield from transcript.conversation(record.file, record.line, trace_id, setting=setting)


def _recognises(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        return False
    tools = value.get("tools")
    described = isinstance(tools, list) and any(isinstance(tool, dict) and "input_schema" in tool for tool in tools)
    return "system" in value or described or any(map(has_blocks, value["messages"]))


FORMAT = Format(
    "Anthropic messages",
    "a conversation in the form of Anthropic's Messages API",
    "messages with tool_use, tool_result or thinking blocks, with system beside them, or tools with input_schema",
    _recognises,
    rows(read),
)
