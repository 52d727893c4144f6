"""What `agentspec serve --record` wrote: a conversation's keys, and what exact replay needs besides.

Source: docs/recording.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agentspec.errors import TraceError
from agentspec.replay.conversations import Conversation, Ids
from agentspec.replay.readers import conversation
from agentspec.replay.readers.base import Format, Record, ids_at, object_at, objects, rows

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
    options = row.get("options")
    if isinstance(options, dict) and {"regex", "lark"} & options.keys():
        raise TraceError("the answer was held to a regex or a grammar, and a turn can't ask for that")
    answers, prompt = objects(row, "answers"), ids_at(object_at(row, "prompt"), "tokens")
    for found in conversation.read(record):
        tokens = ids_at(answers[0], "tokens") if answers else ()
        yield replace(found, ids={found.targets[0]: Ids(tokens, prompt)}) if tokens else found


FORMAT = Format(
    "recording",
    "what agentspec serve --record wrote, with token ids",
    f"format {NAME}",
    lambda value: isinstance(value, dict) and value.get("format") == NAME,
    rows(read),
)
