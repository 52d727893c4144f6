"""Turns that were answered already, kept in a file as they come, so that a long replay can be gone on with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from agentspec.errors import ConfigError, TraceError
from agentspec.own_file import append_line, open_own
from agentspec.replay.formats import read_file
from agentspec.replay.turn_report import TurnReport, taken_over
from agentspec.replay.turns import Turn
from agentspec.replay.wire import TurnRow
from agentspec.trace import Stats

_FORMAT = "agentspec-replay-progress"
_REPORT = TypeAdapter(TurnReport)


class ProgressFile:
    """A file of turn reports, one a line behind a line that says how they were made.

    Args:
        path: Made if it is not there.
        setup: How turns are answered now, and with which fixed budgets too; see `wire.Setup`.

    Raises:
        ConfigError: It can't be read or written, or what is in it was made otherwise or is something else.
    """

    def __init__(self, path: Path, setup: Mapping[str, Any]) -> None:
        self._path = path
        self._known: dict[tuple[object, ...], TurnReport] = {}
        self._budgets = {*setup["budgets"]}
        head = json.dumps({"format": _FORMAT, **setup})
        try:
            content = _content(path)
            if head.encode().startswith(content):  # nothing yet, or the beginning of that line
                path.write_bytes(b"")
                append_line(path, head.encode())
                return
            first, *lines = content.split(b"\n")
            self._check(first, head)
            if _parsed(lines[-1] if lines else first) is None:  # nothing, or torn
                with path.open("r+b") as file:
                    file.truncate(len(content) - len(lines.pop()))
        except OSError as error:
            raise ConfigError(f"--resume {path} can't be used: {error.strerror}") from error
        for number, line in enumerate(lines, 2):
            if line.strip():
                self._keep(number, line)

    def find(self, turn: Turn, options: Mapping[str, Any]) -> TurnReport | None:
        """What became of a turn that was asked the same, if it was answered already."""
        found = self._known.get((*_key(turn), _digest(turn, options)))
        return replace(found, **taken_over(turn)) if found else None

    def append(self, report: TurnReport, turn: Turn, options: Mapping[str, Any]) -> None:
        """Keep what became of a turn."""
        row = {"asked": _digest(turn, options), **_row(report)}
        append_line(self._path, json.dumps(row).encode())

    def _check(self, first: bytes, head: str) -> None:
        begun = _parsed(first)
        if begun is None or begun.get("format") != _FORMAT:
            raise ConfigError(f"--resume {self._path} is no progress file: {_what(self._path)}; name another file")
        if begun != json.loads(head):
            raise ConfigError(
                f"--resume {self._path} was begun with another model or machine, or other options: "
                "name another file, or delete it"
            )

    def _keep(self, number: int, line: bytes) -> None:
        try:
            asked, report = _read(line, self._budgets)
        except (ValueError, LookupError, RecursionError) as error:
            raise ConfigError(
                f"--resume {self._path}:{number}: the line holds no turn that was answered: "
                "delete that line or name another file"
            ) from error
        self._known[(*_key(report), asked)] = report


def _content(path: Path) -> bytes:
    if path.exists() and not path.is_file():  # to open a pipe would wait for who writes it
        raise ConfigError(f"--resume {path} is no file: name another one")
    with open_own(path) as file:
        file.seek(0)
        return file.read()


def _what(path: Path) -> str:
    """What another file is."""
    try:
        format_ = next((name for name, _ in read_file(str(path)) if name), "")
    except TraceError:
        format_ = ""
    return f"it is a trace, of the format {format_}" if format_ else "its first line is not one's"


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _key(turn: Turn | TurnReport) -> tuple[object, ...]:
    """Which turn it is: another conversation's may have the same messages."""
    return turn.digest, turn.number, turn.trace_id, turn.index


def _digest(turn: Turn, options: Mapping[str, Any]) -> str:
    """Of all that is asked beside the turn's own digest: the recorded answer's ids decide whether others are used."""
    text = json.dumps([options, turn.tokens, turn.written], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _row(report: TurnReport) -> dict[str, Any]:
    row: dict[str, Any] = _REPORT.dump_python(report, mode="json")
    return row


def _read(line: bytes, budgets: set[int]) -> tuple[str, TurnReport]:
    """The digest of what was asked and the turn's report.

    Raises:
        ValueError, LookupError: It is none that we wrote.
    """
    row = json.loads(line)
    report = _REPORT.validate_json(line, strict=True)
    asked, counted = row.pop("asked"), Stats()
    if not isinstance(asked, str) or _row(report) != row or {*report.fixed} != budgets:
        raise ValueError("a part is missing, or there is one too many")
    for record in report.rounds:
        counted.add(record)
    sums = ("forwards", "tokens", "drafted", "accepted", "segments")
    if any(getattr(report.stats, name) != getattr(counted, name) for name in sums):
        raise ValueError("the sums are not those of the rounds")
    TurnRow.model_validate(report.wire)
    return asked, report
