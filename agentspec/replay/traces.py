"""Reads trace files of any format that is known into turns: see `agentspec.replay.formats`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.categories import Category
from agentspec.replay.conversations import Call, Conversation
from agentspec.replay.formats import read_file, read_value
from agentspec.replay.grouping import Grouper
from agentspec.replay.readers.base import Item, Record
from agentspec.replay.turns import Recording, Skipped, Turn

MOST_CHARS = 64 * 2**20
"""Of calls of which a conversation may still be made."""

_FORMATS_TOLD = "what a trace can be is in `agentspec replay --list-formats`"

DEMO = Path(__file__).with_name("coding_agent.jsonl")
"""A short conversation of a coding agent, written for `agentspec demo`."""


def read_traces(files: Sequence[str | PathLike[str]], *, turns: int | None = None) -> Recording:
    """Read trace files; a record that can't be used is left out and listed.

    What a record is shows in its content: see `agentspec.replay.formats`. Single calls are made into conversations,
    across files. The turns come in the order of the files, and of the records in them.

    Args:
        files: In UTF-8.
        turns: The most turns of each conversation, its first ones; None: all.

    Raises:
        TraceError: A file can't be read, or there is no turn in any of them.
    """
    names = [fspath(name) for name in files]
    found: list[Turn] = []
    skipped: list[Skipped] = []
    for _, item in read_conversations(names):
        for each in islice(item.turns(), turns) if isinstance(item, Conversation) else [item]:
            if isinstance(each, Turn):
                found.append(each)
            else:
                skipped.append(each)
    order = {name: place for place, name in reversed([*enumerate(names)])}
    skipped.sort(key=lambda each: (order[each.file], each.line))
    if not found:
        first = f"; the first: {skipped[0]}" if skipped else f"; they hold no record: {_FORMATS_TOLD}"
        if skipped and skipped[0].reason.startswith("not JSON"):
            first += f"; {_FORMATS_TOLD}"
        raise TraceError(f"no turn can be read from {len(files)} trace file(s){first}")
    found.sort(key=lambda each: (order[each.file], each.line))
    return Recording(tuple(mark_repeats(found)), tuple(skipped))


def read_conversations(files: Iterable[str]) -> Iterator[tuple[str, Conversation | Turn | Skipped]]:
    """What trace files hold, one thing after the other, each with the name of its format; "" where it is none.

    Calls are made into conversations, which come when nothing more is expected of them. No more is held in memory than
    one record, the conversation of a session file, and the calls of which a conversation may still be made.

    Raises:
        TraceError: A file can't be read.
    """
    yield from _grouped(pair for name in files for pair in read_file(name))


def read_row(row: Mapping[str, Any], file: str, number: int = 1) -> list[Turn | Skipped]:
    """The turns of one record, by the reader of its format.

    Raises:
        TraceError: No reader knows it, or it can't be used.
    """
    found: list[Turn | Skipped] = []
    for _, item in _grouped(read_value(Record(row, file, number))):
        found += item.turns() if isinstance(item, Conversation) else [item]
    if len(found) == 1 and isinstance(found[0], Skipped) and found[0].index is None:
        raise TraceError(found[0].reason)
    return found


def _grouped(items: Iterable[tuple[str, Item]]) -> Iterator[tuple[str, Conversation | Turn | Skipped]]:
    groupers: dict[str, Grouper] = {}
    for name, item in items:
        if not isinstance(item, Call):
            yield name, item
            continue
        grouper = groupers.setdefault(name, Grouper(MOST_CHARS))
        yield from ((name, conversation) for conversation in grouper.add(item))
    for name, grouper in groupers.items():
        yield from ((name, conversation) for conversation in grouper.finish())


def mark_repeats(turns: Iterable[Turn]) -> Iterator[Turn]:
    """The turns, numbered, those of a line whose task an earlier line holds already marked as repeats.

    A task is the first user message and the tools. A line that goes on where the prompt of an earlier one stopped, as
    logs of single calls do, is the same conversation: a repeat if that one is.
    """
    marked: dict[tuple[str, str], dict[tuple[str, int, str], Turn]] = {}  # of each line the latest turn
    numbers: Counter[tuple[str, str]] = Counter()  # a conversation may have a line for each turn
    for turn in turns:
        lines, place = marked.setdefault(_task(turn), {}), _place(turn)
        before = lines.get(place) or next((line for line in reversed(lines.values()) if _goes_on(turn, line)), None)
        numbers[named := (turn.file, turn.trace_id)] += 1
        lines[place] = replace(turn, repeat=before.repeat if before else bool(lines), number=numbers[named])
        yield lines[place]


def _place(turn: Turn) -> tuple[str, int, str]:
    """What tells conversations apart: a record may hold several."""
    return turn.file, turn.line, turn.trace_id


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
    seen: dict[tuple[tuple[str, int, str], Category], int] = {}
    by_category: dict[Category, list[tuple[int, int]]] = {}
    for place, turn in enumerate(turns):
        key = (_place(turn), turn.category)
        seen[key] = seen.get(key, 0) + 1
        by_category.setdefault(turn.category, []).append((seen[key], place))
    kept = sorted(place for ranked in by_category.values() for _, place in sorted(ranked)[:each])
    return [turns[place] for place in kept]


def _task(turn: Turn) -> tuple[str, str]:
    first = next((message for message in turn.messages if message.get("role") == "user"), turn.messages[0])
    return json.dumps(first.get("content"), sort_keys=True), json.dumps(turn.tools, sort_keys=True)
