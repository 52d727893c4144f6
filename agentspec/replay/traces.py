"""Reads recorded agent conversations: one JSON object a line, and the turns in it that a model wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from agentspec.errors import TraceError

DEMO = Path(__file__).with_name("coding_agent.jsonl")
"""A short conversation of a coding agent, written for `agentspec demo`."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message that a model wrote, seen from before it.

    Attributes:
        trace_id: Of the conversation.
        index: Of the message in it, from 0.
        messages: What came before, in OpenAI's form, at least one.
        tools: What the model could call, in OpenAI's form.
        file: Where it was read from.
        line: Its line there, from 1.
        called: Whether the recorded message called tools.
    """

    trace_id: str
    index: int
    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...]
    file: str
    line: int
    called: bool


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line, or one turn of it, that can't be used.

    Attributes:
        line: From 1; 0 stands for the whole file.
        reason: Why; it holds nothing of the recorded text.
        index: Of the turn's message; None where it is the whole line.
    """

    file: str
    line: int
    reason: str
    index: int | None = None

    @property
    def wire(self) -> dict[str, Any]:
        """As reports show it."""
        where: dict[str, Any] = {"file": self.file, "line": self.line}
        return where | ({} if self.index is None else {"index": self.index}) | {"reason": self.reason}


@dataclass(frozen=True, slots=True)
class Recording:
    """All turns of some files, in order, and what could not be read."""

    turns: tuple[Turn, ...]
    skipped: tuple[Skipped, ...]


def read_traces(files: Sequence[str | PathLike[str]], *, turns: int | None = None) -> Recording:
    """Read trace files; a line that can't be used is left out and listed.

    A line is `{"trace_id", "tools", "messages", "targets"}`: OpenAI tools and messages, and the indexes of the
    messages that a model wrote; without targets, every assistant message. Other keys are ignored.

    Args:
        files: JSON lines, in UTF-8.
        turns: The most turns of each line, its first ones; None: all.

    Raises:
        TraceError: A file can't be read, or there is no turn in any of them.
    """
    found: list[Turn] = []
    skipped: list[Skipped] = []
    for name in files:
        for item in _read_file(fspath(name), turns):
            if isinstance(item, Turn):
                found.append(item)
            else:
                skipped.append(item)
    if not found:
        first = f"; the first: {skipped[0].file}:{skipped[0].line}: {skipped[0].reason}" if skipped else ""
        raise TraceError(f"no turn can be read from {len(files)} trace file(s){first}")
    return Recording(tuple(found), tuple(skipped))


def _read_file(name: str, turns: int | None) -> Iterator[Turn | Skipped]:
    try:
        lines = Path(name).read_bytes().split(b"\n")
    except OSError as error:
        raise TraceError(f"trace file {name} can't be read: {error.strerror}") from error
    if not any(line.strip() for line in lines):
        yield Skipped(name, 0, "the file is empty")
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield from _read_line(line, name, number)[:turns]
            except TraceError as error:
                yield Skipped(name, number, str(error))


def _read_line(line: bytes, file: str, number: int) -> list[Turn | Skipped]:
    try:
        row = json.loads(line.decode())
    except UnicodeDecodeError:
        raise TraceError("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise TraceError(f"not JSON: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, or a thousand brackets
        raise TraceError("not JSON that can be read") from None
    if not isinstance(row, dict):
        raise TraceError("not a JSON object")
    messages = _objects(row, "messages")
    if not messages:
        raise TraceError("messages is missing or empty")
    tools, trace_id = tuple(_objects(row, "tools")), row.get("trace_id", f"line {number}")
    if not isinstance(trace_id, str):
        raise TraceError("trace_id is not a string")
    return [
        Turn(trace_id, index, tuple(messages[:index]), tools, file, number, bool(messages[index].get("tool_calls")))
        if index
        else Skipped(file, number, "there is no message before it", index)
        for index in _targets(row, messages)
    ]


def _objects(row: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    items = row.get(key) or []
    if not isinstance(items, list):
        raise TraceError(f"{key} is not a list")
    for place, item in enumerate(items):
        if not isinstance(item, dict):
            raise TraceError(f"{key}[{place}] is not an object")
    return items


def _targets(row: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> list[int]:
    written = [index for index, message in enumerate(messages) if message.get("role") == "assistant"]
    targets = row.get("targets")
    if targets is None:
        targets = written
    if not isinstance(targets, list):
        raise TraceError("targets is not a list")
    for place, target in enumerate(targets):
        if not isinstance(target, int) or isinstance(target, bool) or target not in written:
            raise TraceError(f"targets[{place}] is not the index of an assistant message")
    if not targets:
        raise TraceError("no message is a model's")
    return targets
