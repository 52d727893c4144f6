"""What every reader of a format is: how its records are recognised, and what comes of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from agentspec.errors import TraceError
from agentspec.replay.conversations import Call, Conversation
from agentspec.replay.turns import Skipped, Turn

Item: TypeAlias = Conversation | Call | Turn | Skipped
"""What a reader finds: a turn for itself is a task of which no answer was recorded."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a trace file.

    Attributes:
        value: Of JSON; or the whole text of a file that is none.
        file: Where it was read from.
        line: From 1: its line, or its place in a file that is one document.
    """

    value: Any
    file: str
    line: int

    def skipped(self, reason: str) -> Skipped:
        """This record, left out."""
        return Skipped(self.file, self.line, reason)


class Reader(Protocol):
    """Reads the records of one format in one file."""

    def feed(self, record: Record) -> Iterable[Item]:
        """Take the next record; its items may come later.

        Raises:
            TraceError: It can't be used.
        """

    def finish(self) -> Iterable[Item]:
        """What is left when there are no more records."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A reader of records that each stand for themselves."""

    read: Callable[[Record], Iterable[Item]]

    def feed(self, record: Record) -> Iterable[Item]:
        """The items of this record."""
        return self.read(record)

    def finish(self) -> Iterable[Item]:
        """Nothing."""
        return ()


@dataclass(frozen=True, slots=True)
class Format:
    """A format of records.

    Attributes:
        name: Short, for tables.
        what: What it holds and who writes it.
        sign: How a record of it is recognised.
        recognises: Whether a value is such a record.
        open: A reader for another file.
    """

    name: str
    what: str
    sign: str
    recognises: Callable[[Any], bool]
    open: Callable[[], Reader]


def rows(read: Callable[[Record], Iterable[Item]]) -> Callable[[], Reader]:
    """For a format whose records each stand for themselves: `Format.open`."""
    return lambda: Rows(read)


def has_keys(*keys: str) -> Callable[[Any], bool]:
    """For a format whose records are objects with certain keys: `Format.recognises`."""
    return lambda value: isinstance(value, dict) and all(key in value for key in keys)


def objects(row: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The list of objects under a key; empty where there is none.

    Raises:
        TraceError: It is something else.
    """
    return object_list(row.get(key), key)


def object_list(value: object, name: str) -> list[dict[str, Any]]:
    """The value, a list of objects; empty where there is none.

    Raises:
        TraceError: It is something else.
    """
    items = value or []
    if not isinstance(items, list):
        raise TraceError(f"{name} is not a list")
    for place, item in enumerate(items):
        if not isinstance(item, dict):
            raise TraceError(f"{name}[{place}] is not an object")
    return items


def object_at(row: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The object under a key; empty where there is none.

    Raises:
        TraceError: It is something else.
    """
    value = row.get(key)
    if value is not None and not isinstance(value, dict):
        raise TraceError(f"{key} is not an object")
    return value or {}


def text_at(row: Mapping[str, Any], key: str) -> str:
    """The text under a key; empty where there is none.

    Raises:
        TraceError: It is something else.
    """
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise TraceError(f"{key} is not a string")
    return value or ""


def name_at(row: Mapping[str, Any], *keys: str) -> str:
    """The first text or number under one of the keys, as a text; empty where there is none."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return str(value)
    return ""


def parsed(value: object) -> Any:  # noqa: ANN401
    """The value of a text that is a JSON object or list, as exporters write them in attributes; any other as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def each(items: Iterable[Any], known: Callable[[Any], bool]) -> bool:
    """Whether there is an item, and all are known."""
    found = list(items)
    return bool(found) and all(map(known, found))


def ids_at(row: Mapping[str, Any], key: str) -> tuple[int, ...]:
    """The token ids under a key; empty where there are none.

    Raises:
        TraceError: It is something else.
    """
    value = row.get(key) or []
    if not isinstance(value, list) or not all(type(token) is int and token >= 0 for token in value):
        raise TraceError(f"{key} is not a list of token ids")
    return tuple(value)


def nothing() -> Iterator[Item]:
    """No item: for records that are known to hold none."""
    return iter(())
