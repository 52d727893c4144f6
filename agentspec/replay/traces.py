"""Reads recorded rows, one JSON object a line: conversations of agents, recordings, tool-call tasks, edits, prompts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.categories import Category
from agentspec.replay.readers import conversation, edits, prompts, recording, toolcalls
from agentspec.replay.turns import Line, Recording, Skipped, Turn

DEMO = Path(__file__).with_name("coding_agent.jsonl")
"""A short conversation of a coding agent, written for `agentspec demo`."""

_READERS: tuple[tuple[frozenset[str], Callable[[Line], list[Turn | Skipped]]], ...] = (
    (conversation.KEYS, conversation.read),
    (toolcalls.KEYS, toolcalls.read),
    (edits.KEYS, edits.read),
    (prompts.KEYS, prompts.read),
)
"""By the keys that a row of the shape has."""


def read_traces(files: Sequence[str | PathLike[str]], *, turns: int | None = None) -> Recording:
    """Read trace files; a line that can't be used is left out and listed.

    What a line is shows in its keys: see `agentspec.replay.readers`. Other keys are ignored.

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
    return Recording(tuple(mark_repeats(found)), tuple(skipped))


def read_row(row: Mapping[str, Any], file: str, number: int = 1) -> list[Turn | Skipped]:
    """The turns of one row, by the reader of its shape; a recording of ours names its format.

    Raises:
        TraceError: No reader knows its keys, or it can't be used.
    """
    if row.get("format") == recording.FORMAT:
        return recording.read(Line(row, file, number))
    for keys, read in _READERS:
        if keys <= row.keys():
            return read(Line(row, file, number))
    shapes = ", or ".join(" and ".join(sorted(keys)) for keys, _ in _READERS)
    raise TraceError(f"not a row of a known shape, with the keys {shapes}")


def mark_repeats(turns: Iterable[Turn]) -> Iterator[Turn]:
    """The turns, those of a line whose task an earlier line holds already marked as repeats.

    A task is the first user message and the tools. A line that goes on where the prompt of an earlier one stopped, as
    logs of single calls do, is the same conversation: a repeat if that one is.
    """
    marked: dict[tuple[str, str], dict[tuple[str, int], Turn]] = {}  # of each line the latest turn
    for turn in turns:
        lines, place = marked.setdefault(_task(turn), {}), (turn.file, turn.line)
        before = lines.get(place) or next((line for line in reversed(lines.values()) if _goes_on(turn, line)), None)
        lines[place] = replace(turn, repeat=before.repeat if before else bool(lines))
        yield lines[place]


def _goes_on(turn: Turn, earlier: Turn) -> bool:
    length = len(earlier.messages)
    return length < len(turn.messages) and turn.messages[:length] == earlier.messages


def select(recording: Recording, *, categories: Sequence[Category] = (), each: int | None = None) -> Recording:
    """Fewer turns, in the same order.

    Args:
        recording: Of all turns.
        categories: Only these; none: all.
        each: The most turns of each category; first turns of many lines are preferred to many turns of the first ones.

    Raises:
        TraceError: No turn is left.
    """
    turns = [turn for turn in recording.turns if not categories or turn.category in categories]
    if not turns:
        there = ", ".join(dict.fromkeys(turn.category for turn in recording.turns))
        raise TraceError(f"no turn is of category {', '.join(categories)}; there are: {there}")
    if each is not None:
        turns = _bounded(turns, each)
    return Recording(tuple(turns), recording.skipped)


def _bounded(turns: Sequence[Turn], each: int) -> list[Turn]:
    seen: dict[tuple[str, int, Category], int] = {}
    by_category: dict[Category, list[tuple[int, int]]] = {}
    for place, turn in enumerate(turns):
        key = (turn.file, turn.line, turn.category)
        seen[key] = seen.get(key, 0) + 1
        by_category.setdefault(turn.category, []).append((seen[key], place))
    kept = sorted(place for ranked in by_category.values() for _, place in sorted(ranked)[:each])
    return [turns[place] for place in kept]


def _task(turn: Turn) -> tuple[str, str]:
    first = next((message for message in turn.messages if message.get("role") == "user"), turn.messages[0])
    return json.dumps(first.get("content"), sort_keys=True), json.dumps(turn.tools, sort_keys=True)


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
                yield from read_row(_object(line), name, number)[:turns]
            except TraceError as error:
                yield Skipped(name, number, str(error))


def _object(line: bytes) -> dict[str, Any]:
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
    return row
