"""What a replay found: each turn answered plainly and speculatively, and the sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentspec.replay.categories import Category
from agentspec.replay.intervals import speedup_interval
from agentspec.replay.sums import summed, whole
from agentspec.replay.turn_report import TurnReport, depths_wire, rounded, segments_wire
from agentspec.replay.turns import Skipped
from agentspec.trace import Stats, by_source

if TYPE_CHECKING:
    from agentspec.replay.wire import ReplayReport, Sums

_SLACK = 1.15
"""By how much times of a quiet machine may exceed what the saved forwards explain."""


@dataclass(slots=True)
class Report:
    """All turns of a replay, and what was left out.

    Attributes:
        setup: How it was made; see `wire.Setup`.
        projected: Where a speed-up that was not measured may lie; None: it was, or is not known.
        drafting_seconds: What drafting took here.
        interrupted: Whether there was more to do.
    """

    setup: Mapping[str, Any]
    turns: list[TurnReport] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    projected: tuple[float, float] | None = None
    drafting_seconds: float = 0.0
    interrupted: bool = False

    @property
    def identical(self) -> bool:
        """Whether no answer differed."""
        return all(turn.identical is not False for turn in self.turns)

    @property
    def total(self) -> dict[str, Any]:
        """Sums over the turns."""
        turns = self.turns
        return summed(turns) | {
            "speedup_interval": self.projected or self._measured_interval(),
            "skipped": len(self.skipped),
            "repeats": sum(turn.repeat for turn in turns),
            "approximate": sum(turn.approximate for turn in turns),
            "loosened": sum(turn.loosened for turn in turns),
            "prefill_seconds": rounded(whole(turn.prefill_seconds for turn in turns)),
            "drafting_seconds": round(self.drafting_seconds, 4),
        }

    def by_category(self, *, repeats: bool = True) -> dict[str, dict[str, Any]]:
        """Sums over the turns of each category; `repeats`: whether those of repeated tasks count."""
        turns = [turn for turn in self.turns if repeats or not turn.repeat]
        groups = {category: [turn for turn in turns if turn.category is category] for category in Category}
        return {category.value: summed(group) for category, group in groups.items() if group}

    @property
    def wire(self) -> ReplayReport:
        """As `agentspec replay --json` prints it, and everything that shows a report reads it."""
        from agentspec.replay.advice import advise
        from agentspec.replay.wire import ReplayReport  # pydantic takes a while to be imported

        stats = Stats.of(turn.stats for turn in self.turns)
        found = ReplayReport.model_validate(
            {
                "setup": self.setup,
                "total": self.total,
                "without_repeats": summed([turn for turn in self.turns if not turn.repeat]),
                "by_category": self.by_category(),
                "by_category_without_repeats": self.by_category(repeats=False),
                "by_source": by_source(stats.drafted, stats.accepted),
                "by_segment": segments_wire(stats),
                "by_depth": depths_wire(record for turn in self.turns for record in turn.rounds),
                "advice": [],
                "turns": [turn.wire for turn in self.turns],
                "skipped": [skipped.wire for skipped in self.skipped],
                "interrupted": self.interrupted,
            }
        )
        return found.model_copy(update={"advice": advise(found)})

    def _measured_interval(self) -> tuple[float, float] | None:
        pairs = [(turn.plain_seconds, turn.seconds) for turn in self.turns]
        known = [(plain, ours) for plain, ours in pairs if plain is not None and ours]
        return speedup_interval(*zip(*known, strict=True)) if known and self.setup["mode"] == "live" else None


def headline(report: ReplayReport) -> str:
    """The report in one line."""
    total = report.total
    tokens = f"{total.tokens:,} tokens in {total.forwards:,} forwards"
    if not total.turns:
        return f"nothing was answered: {total.skipped} skipped"
    if report.setup.mode == "oracle":
        per_forward = f"{total.tokens_per_forward or 0:.2f} tokens a forward"
        if not total.speedup:
            return f"{per_forward}: {tokens}"
        return f"about {faster(total.speedup)} by {_cost_name(report)}, {per_forward}: {tokens}"
    same = "identical" if total.identical else "NOT identical"
    if disturbed(total):
        return f"about {faster(total.median_speedup or 1)} (the median turn): {tokens}, {same}"
    return f"{faster(total.speedup or 1)}: {tokens}, {same}"


def disturbed(total: Sums) -> bool:
    """Whether the times say more than the saved forwards can explain: something else kept the machine busy."""
    return bool(total.speedup and total.speedup > _SLACK * total.plain_forwards / total.forwards)


def faster(speedup: float) -> str:
    """A ratio of times in words."""
    if f"{max(speedup, 1 / speedup):.1f}" == "1.0":
        return "as fast as plain decoding"
    return f"{speedup:.1f}x faster" if speedup >= 1 else f"{1 / speedup:.1f}x slower"


def _cost_name(report: ReplayReport) -> str:
    return report.setup.cost.name if report.setup.cost else "no cost"
