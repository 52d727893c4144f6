"""Turns that were answered already, kept in a file as they come, so that a long replay can be gone on with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from agentspec.draft import Draft
from agentspec.errors import ConfigError
from agentspec.replay.categories import Category
from agentspec.replay.turn_report import Fixed, TurnReport
from agentspec.replay.turns import Turn
from agentspec.segments import Segment
from agentspec.trace import Stats, StepRecord

_FORMAT = "agentspec-replay-progress"


class ProgressFile:
    """A file of turn reports, one a line behind a line that says how they were made.

    Args:
        path: Made if it is not there.
        setup: How turns are answered now; see `wire.Setup`.

    Raises:
        ConfigError: It can't be read or written, or what is in it was made otherwise.
    """

    def __init__(self, path: Path, setup: Mapping[str, Any]) -> None:
        self._path = path
        self._known: dict[tuple[str, int], TurnReport] = {}
        head = {"format": _FORMAT, **setup}
        try:
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            if not lines:
                path.write_text(f"{json.dumps(head)}\n", encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--resume {path} can't be used: {error}") from error
        if lines and _parsed(lines[0]) != json.loads(json.dumps(head)):
            raise ConfigError(
                f"--resume {path} was begun with another model or machine, or other options: "
                "name another file, or delete it"
            )
        for line in lines[1:]:
            row = _parsed(line)  # the last one may be torn
            if row is not None:
                turn = _read(row)
                self._known[turn.digest, turn.number] = turn
        if lines and _parsed(lines[-1]) is None:
            path.write_text("".join(f"{line}\n" for line in lines if _parsed(line) is not None), encoding="utf-8")

    def find(self, turn: Turn, held: str) -> TurnReport | None:
        """What became of a turn, if it was answered already, held to the same."""
        found = self._known.get((turn.digest, turn.number))
        return found if found and found.held == held else None

    def append(self, report: TurnReport) -> None:
        """Keep what became of a turn."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(_row(report))}\n")


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _row(report: TurnReport) -> dict[str, Any]:
    kept = {each.name: getattr(report, each.name) for each in fields(report)}
    rounds = [asdict(record) for record in report.rounds]
    fixed = {size: asdict(found) for size, found in report.fixed.items()}
    return {**kept, "rounds": rounds, "fixed": fixed, "stats": report.stats.to_dict()}


def _read(row: dict[str, Any]) -> TurnReport:
    """A turn's report from its line; the sums are made of its rounds again."""
    rounds = [_record(each) for each in row["rounds"]]
    stats = Stats(prefill_tokens=row["stats"]["prefill_tokens"])
    stats.drafted.update(dict.fromkeys(row["stats"]["drafted"], 0))  # sources that were asked and never guessed
    stats.accepted.update(dict.fromkeys(row["stats"]["accepted"], 0))
    for record in rounds:
        stats.add(record)
    fixed = {int(size): Fixed(**found) for size, found in row["fixed"].items()}
    return TurnReport(
        **{**row, "category": Category(row["category"]), "rounds": rounds, "stats": stats, "fixed": fixed}
    )


def _record(row: dict[str, Any]) -> StepRecord:
    draft = Draft(*(tuple(row["draft"][name]) for name in ("tokens", "parents", "scores", "sources")))
    segments = tuple(map(Segment, row["segments"]))
    parts = {"segment": Segment(row["segment"]), "draft": draft, "segments": segments}
    return StepRecord(**{**row, **parts, "path": tuple(row["path"]), "tokens": tuple(row["tokens"])})
