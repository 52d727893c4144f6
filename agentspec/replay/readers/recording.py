"""What `agentspec serve --record` wrote: a conversation's keys, and what exact replay needs besides.

Source: docs/recording.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Conversation, Ids, Setting
from agentspec.replay.readers import conversation
from agentspec.replay.readers.base import Format, Record, ids_at, object_at, objects, rows, text_at

NAME = "agentspec-recording"
VERSION = 1


def read(record: Record) -> Iterator[Conversation]:
    """The turn that was answered, as the first of its answers was, with its token ids.

    Raises:
        TraceError: The row is of another version, can't be used, or a turn can't ask what it asked.
    """
    row = record.value
    if row.get("version") != VERSION:
        raise TraceError(f"a recording of another version: this agentspec reads version {VERSION}")
    if row.get("redacted"):
        raise TraceError("the recording is redacted: there are no messages that could be answered anew")
    if "messages" not in row:
        raise TraceError("the prompt was no conversation: it can't be answered anew as one")
    answer: Mapping[str, Any] = next(iter(objects(row, "answers")), {})
    tokens, prompt = ids_at(answer, "tokens"), ids_at(object_at(row, "prompt"), "tokens")
    for found in conversation.read(record):
        text = text_at(answer, "text") if "text" in answer else None
        ids = {found.targets[0]: Ids(tokens, prompt, text)} if tokens else {}
        yield replace(found, ids=ids, setting=_as_asked(found.setting, row, answer))


def _as_asked(setting: Setting, row: Mapping[str, Any], answer: Mapping[str, Any]) -> Setting:
    """The setting with all that was asked; an answer that was cut by the model's context was, as by `max_tokens`."""
    options, params = object_at(row, "options"), object_at(row, "params")
    if setting.tools:
        options = {"tool_choice": "auto", **options}
    if answer.get("finish_reason") == "length":
        params = {**params, "max_tokens": len(ids_at(answer, "tokens"))}
    return replace(setting, options=options, params=params)


FORMAT = Format(
    "recording",
    "what agentspec serve --record wrote, with token ids",
    f"format {NAME}",
    lambda value: isinstance(value, dict) and value.get("format") == NAME,
    rows(read),
)
