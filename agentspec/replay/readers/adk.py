"""Sessions of Google's Agent Development Kit.

Source: google/adk-python, `sessions/session.py` and `events/event.py`. One JSON object a session: `events`, each with
an `author` and a `content` of Google's Content (see `genai_parts`), in either spelling of the names; events of the user
and results of functions have role `user`, a model's have role `model`. `partial` events repeat what comes whole later.
Arguments are objects: the model's white space is lost. Instructions and tools are not in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Transcript
from agentspec.replay.readers.base import Format, Item, Record, name_at, object_at, objects, rows
from agentspec.replay.readers.genai_parts import read_message


def read(record: Record) -> Iterator[Item]:
    """The conversation of one session.

    Raises:
        TraceError: It can't be used.
    """
    transcript = Transcript()
    for event in objects(record.value, "events"):
        content = object_at(event, "content")
        if content and event.get("partial") is not True:
            transcript.extend(read_message(content))
    if not transcript.messages:
        raise TraceError("the session has no content")
    yield from transcript.conversation(record.file, record.line, name_at(record.value, "id") or f"line {record.line}")


def _recognises(value: object) -> bool:
    events = value.get("events") if isinstance(value, dict) else None
    return isinstance(events, list) and any(map(_is_event, events))


def _is_event(event: object) -> bool:
    if not isinstance(event, Mapping) or "author" not in event:
        return False
    content: Any = event.get("content")
    return isinstance(content, Mapping) and isinstance(content.get("parts"), list)


FORMAT = Format(
    "ADK session",
    "sessions of Google's Agent Development Kit",
    "events with author and content of parts",
    _recognises,
    rows(read),
)
