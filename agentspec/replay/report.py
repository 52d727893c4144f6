"""What a replay found: each turn answered plainly and speculatively, and the sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentspec.replay.categories import Category
from agentspec.replay.sums import summed
from agentspec.replay.turn_report import TurnReport, segments_wire
from agentspec.replay.turns import Skipped
from agentspec.trace import Stats, by_source

_SLACK = 1.15
"""By how much times of a quiet machine may exceed what the saved forwards explain."""


@dataclass(slots=True)
class Report:
    """All turns of a replay, and what was left out.

    Attributes:
        interrupted: Whether there was more to do.
    """

    turns: list[TurnReport] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    interrupted: bool = False

    @property
    def identical(self) -> bool:
        """Whether no answer differed."""
        return all(turn.identical for turn in self.turns)

    @property
    def total(self) -> dict[str, Any]:
        """Sums over the turns."""
        return summed(self.turns) | {
            "skipped": len(self.skipped),
            "repeats": sum(turn.repeat for turn in self.turns),
            "approximate": sum(turn.approximate for turn in self.turns),
            "prefill_seconds": round(sum(turn.prefill_seconds for turn in self.turns), 4),
        }

    def by_category(self, *, repeats: bool = True) -> dict[str, dict[str, Any]]:
        """Sums over the turns of each category; `repeats`: whether those of repeated tasks count."""
        turns = [turn for turn in self.turns if repeats or not turn.repeat]
        groups = {category: [turn for turn in turns if turn.category is category] for category in Category}
        return {category.value: summed(group) for category, group in groups.items() if group}

    @property
    def wire(self) -> dict[str, Any]:
        """As `agentspec replay --json` prints it."""
        stats = Stats.of(turn.stats for turn in self.turns)
        return {
            "turns": [turn.wire for turn in self.turns],
            "total": self.total,
            "without_repeats": summed([turn for turn in self.turns if not turn.repeat]),
            "by_category": self.by_category(),
            "by_category_without_repeats": self.by_category(repeats=False),
            "by_source": by_source(stats.drafted, stats.accepted),
            "by_segment": segments_wire(stats),
            "skipped": [skipped.wire for skipped in self.skipped],
            "interrupted": self.interrupted,
        }


def headline(report: Report) -> str:
    """The report in one line."""
    total = report.total
    tokens = f"{total['tokens']:,} tokens in {total['forwards']:,} forwards"
    if not total["speedup"]:
        return f"nothing was answered: {total['skipped']} skipped"
    same = "identical" if report.identical else "NOT identical"
    if disturbed(total):
        return f"about {faster(total['median_speedup'])} (the median turn): {tokens}, {same}"
    return f"{faster(total['speedup'])}: {tokens}, {same}"


def disturbed(total: Mapping[str, Any]) -> bool:
    """Whether the times say more than the saved forwards can explain: something else kept the machine busy."""
    return bool(total["speedup"] > _SLACK * total["plain_forwards"] / total["forwards"])


def faster(speedup: float) -> str:
    """A ratio of times in words."""
    return f"{speedup:.1f}x faster" if speedup >= 1 else f"{1 / speedup:.1f}x slower"
