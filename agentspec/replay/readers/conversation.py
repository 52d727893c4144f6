"""Recorded conversations: `{"messages", "tools", "targets", "response_format"}` in OpenAI's form, one object a record.

Source: this project (docs/replay.md); and what many datasets, fine-tuning files and harnesses write, LiveMCPBench among
them. All keys but `messages` may be missing. `targets` are the indexes of the messages that a model wrote, by default
every assistant message; `approximate` names those of them that are not to the character what the model wrote, `tokens`
has the ids of some (`index`, `answer`, `prompt`, and the answer's `text` in its model's markup), and `asked` tells the
`options` and `params` of its answers, as a recording of our own does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import ASKED, Conversation, Ids, Said, Setting
from agentspec.replay.readers.base import Format, Record, ids_at, name_at, object_at, objects, rows, text_at
from agentspec.replay.readers.messages import as_tools, openai_said, schema_of


def read(record: Record) -> Iterator[Conversation]:
    """The conversation of one row.

    Raises:
        TraceError: The row can't be used.
    """
    row: Mapping[str, Any] = record.value
    messages = objects(row, "messages")
    if not messages:
        raise TraceError("messages is missing or empty")
    given = objects(row, "tools") or objects(row, "functions")
    tools = [
        tool for item in given for tool in as_tools([item]) or (item,)
    ]  # who replays it says what is wrong with it
    trace_id = row.get("trace_id", f"line {record.line}")
    if not isinstance(trace_id, str):
        raise TraceError("trace_id is not a string")
    said = [openai_said(message) for message in messages]
    asked = object_at(row, "asked")
    if unknown := asked.keys() - set(ASKED):
        raise TraceError(f"asked has {min(unknown)!r}: it may have {' and '.join(ASKED)}")
    targets = _targets(row, messages)
    yield Conversation(
        file=record.file,
        line=record.line,
        trace_id=trace_id,
        messages=tuple(each.message for each in said),
        targets=tuple(targets),
        setting=Setting(
            tools=tuple(tools),
            schema=schema_of(row.get("response_format")),
            model=name_at(row, "model"),
            **{name: object_at(asked, name) for name in ASKED},
        ),
        approximate=_approximate(row, said) & frozenset(targets),
        ids=_ids(row),
    )


def _targets(row: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> list[int]:
    written = [index for index, message in enumerate(messages) if message.get("role") == "assistant"]
    targets = row.get("targets")
    if targets is None:
        targets = written
    if not isinstance(targets, list):
        raise TraceError("targets is not a list")
    for place, target in enumerate(targets):
        if type(target) is not int or target not in written:
            raise TraceError(f"targets[{place}] is not the index of an assistant message")
    if not targets:
        raise TraceError("no message is a model's")
    return targets


def _approximate(row: Mapping[str, Any], said: Sequence[Said]) -> frozenset[int]:
    told = row.get("approximate")
    if isinstance(told, list) and all(type(index) is int for index in told):
        return frozenset(told)
    return frozenset(index for index, each in enumerate(said) if each.approximate)


def _ids(row: Mapping[str, Any]) -> dict[int, Ids]:
    found = {}
    for place, item in enumerate(objects(row, "tokens")):
        index = item.get("index")
        if type(index) is not int:
            raise TraceError(f"tokens[{place}].index is not an index")
        text = text_at(item, "text") if "text" in item else None
        found[index] = Ids(ids_at(item, "answer"), ids_at(item, "prompt"), text)
    return found


FORMAT = Format(
    "conversation",
    "messages in OpenAI's form: our own rows, datasets, harnesses; what `agentspec convert` writes",
    "messages",
    lambda value: isinstance(value, dict) and "messages" in value,
    rows(read),
)
