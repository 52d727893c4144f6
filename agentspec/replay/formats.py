"""All formats of trace files, and how a record finds its reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentspec.errors import TraceError
from agentspec.replay.files import read_records
from agentspec.replay.readers import (
    adk,
    aider,
    anthropic_messages,
    atif,
    bare_messages,
    claude_code,
    codex,
    conversation,
    edits,
    langchain,
    langfuse,
    langsmith,
    mint,
    openhands,
    openhands_v0,
    pairs,
    prompts,
    recording,
    responses_items,
    spans,
    swe_agent,
    tau_bench,
    toolbench,
    toolcalls,
    vcr,
)
from agentspec.replay.readers.base import Format, Item, Reader, Record
from agentspec.replay.turns import Skipped

FORMATS: tuple[Format, ...] = (
    recording.FORMAT,
    vcr.FORMAT,
    aider.FORMAT,
    atif.FORMAT,
    spans.FORMAT,
    langsmith.FORMAT,
    claude_code.FORMAT,
    openhands.FORMAT,
    openhands_v0.FORMAT,
    swe_agent.FORMAT,
    toolbench.FORMAT,
    tau_bench.FORMAT,
    mint.FORMAT,
    adk.FORMAT,
    langfuse.FORMAT,
    langchain.FORMAT,
    pairs.FORMAT,
    responses_items.FORMAT,
    codex.FORMAT,
    anthropic_messages.FORMAT,
    conversation.FORMAT,
    bare_messages.FORMAT,
    toolcalls.FORMAT,
    edits.FORMAT,
    prompts.FORMAT,
)
"""In the order in which they are asked whether a record is theirs."""

UNKNOWN = "not a record of a format that is known: see `agentspec replay --list-formats`"


def read_file(name: str) -> Iterator[tuple[str, Item]]:
    """What is in a trace file, each with the name of its format; what can't be used is skipped.

    Raises:
        TraceError: The file can't be read.
    """
    return _read(read_records(name, is_text=lambda head: any(format_.recognises(head) for format_ in FORMATS)))


def read_value(record: Record) -> Iterator[tuple[str, Item]]:
    """What is in one record, likewise."""
    return _read([record])


def _read(records: Iterable[Record | Skipped], *, within: bool = False) -> Iterator[tuple[str, Item]]:
    readers: dict[str, tuple[Format, Reader]] = {}
    latest: Format | None = None
    for record in records:
        if isinstance(record, Skipped):
            yield "", record
            continue
        if isinstance(record.value, list) and record.value and not within:
            items = [Record(value, record.file, record.line) for value in record.value]
            yield from _read(items, within=True)
            continue
        try:
            latest = _format(record, latest)
            _, reader = readers.setdefault(latest.name, (latest, latest.open()))
            for item in reader.feed(record):
                yield latest.name, item
        except TraceError as error:
            yield "", record.skipped(str(error))
    for format_, reader in readers.values():
        for item in reader.finish():
            yield format_.name, item


def _format(record: Record, latest: Format | None) -> Format:
    """The format of a record: that of the one before it, if it may be.

    Raises:
        TraceError: It is of none.
    """
    if latest and latest.recognises(record.value):
        return latest
    if not isinstance(record.value, dict | str):
        raise TraceError("not a JSON object")
    for format_ in FORMATS:
        if format_.recognises(record.value):
            return format_
    raise TraceError(UNKNOWN)
