"""Two reports of the same turns side by side: of two configurations, versions or machines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentspec.errors import TraceError
from agentspec.figures import shown
from agentspec.replay.wire import ReplayReport

_SAME = 0.005
"""Ratios closer than this are told as the same."""


@dataclass(frozen=True, slots=True)
class Side:
    """One figure of both reports.

    Attributes:
        what: What of, such as a category.
        name: Its name.
        first: In the first report; None: not there.
        second: In the second one, likewise.
    """

    what: str
    name: str
    first: float | None
    second: float | None

    @property
    def change(self) -> float | None:
        """The second by the first."""
        return self.second / self.first if self.first and self.second is not None else None


def read_report(name: Path) -> ReplayReport:
    """What `agentspec replay --json` wrote to a file.

    Raises:
        TraceError: It can't be read, or is something else.
    """
    try:
        return ReplayReport.model_validate(json.loads(name.read_bytes()))
    except OSError as error:
        raise TraceError(f"report {name} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{name} is no report that `agentspec replay --json` of this version wrote") from error


def compare(first: ReplayReport, second: ReplayReport) -> tuple[str, list[Side]]:
    """Which of two reports is better, in one line, and where: tokens a forward, times, and what was accepted.

    Raises:
        TraceError: They are not of the same turns.
    """
    _check(first, second)
    sides = list(_sides(first, second))
    by = Side("speedup", "all", first.total.speedup, second.total.speedup)
    if by.change is None:
        by = Side("tokens a forward", "all", first.total.tokens_per_forward, second.total.tokens_per_forward)
    figures = f"{shown(by.first)} and {shown(by.second)} {_unit(by)}"
    if by.change is None:
        return f"which is better can't be told: {figures}", sides
    if abs(by.change - 1) < _SAME:
        return f"the same: {figures}", sides
    return f"the second is {'better' if by.change > 1 else 'worse'}, {by.change - 1:+.1%}: {figures}", sides


def differences(first: ReplayReport, second: ReplayReport) -> list[str]:
    """How the two were made otherwise, a line each: model, cost, budget and the like."""
    ours, theirs = ({**report.setup.model_dump(), "device": None} for report in (first, second))
    told = [{name: _named(value) for name, value in setup.items()} for setup in (ours, theirs)]
    return [f"{name}: {told[0][name]} and {told[1][name]}" for name in ours if told[0][name] != told[1][name]]


def _named(value: object) -> object:
    return value.get("name") if isinstance(value, Mapping) else value


def _check(first: ReplayReport, second: ReplayReport) -> None:
    ours, theirs = ([turn.digest for turn in report.turns] for report in (first, second))
    if ours != theirs:
        both = len({*ours} & {*theirs})
        raise TraceError(
            f"the reports are of different turns: {len(ours)} and {len(theirs)}, {both} of them in both; "
            "make both from the same files with the same --turns, --each and --category"
        )


def _sides(first: ReplayReport, second: ReplayReport) -> Iterator[Side]:
    both = ({**first.by_category, "all": first.total}, {**second.by_category, "all": second.total})
    yield from _paired("tokens a forward", *({k: v.tokens_per_forward for k, v in each.items()} for each in both))
    yield from _paired("speedup", *({k: v.speedup for k, v in each.items()} for each in both))
    segments = (first.by_segment, second.by_segment)
    yield from _paired("segment", *({k: v.tokens_per_forward for k, v in each.items()} for each in segments))
    sources = (first.by_source, second.by_source)
    yield from _paired("accepted", *({k: v.accepted for k, v in each.items() if v.drafted} for each in sources))


def _paired(
    what: str, first: Mapping[str, float | int | None], second: Mapping[str, float | int | None]
) -> Iterator[Side]:
    for name in dict.fromkeys((*first, *second)):
        if first.get(name) is not None or second.get(name) is not None:
            yield Side(what, name.replace("_", " "), first.get(name), second.get(name))


def _unit(side: Side) -> str:
    return "times plain decoding" if side.what == "speedup" else "tokens a forward"
