"""From measurements to rates and ratios: each ratio is of two runs of one task side by side, then the median."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agentspec.bench.measure import DRAFTED, OTHERS, OURS, PLAIN, Measurement
from agentspec.bench.tasks import CATEGORIES
from agentspec.figures import median_of
from agentspec.trace import Stats

THEIRS = OTHERS["plain"]
MODES = (PLAIN, OURS, DRAFTED)
SPECULATIVE = (OTHERS["lookup"], OTHERS["assistant"])
BEST = "best speculative of transformers"

NOTES = {
    "rate": "tokens/s after the round that gave the first token; end to end: prompt included, first run only",
    "held": "where a grammar holds our answer (tool, json), transformers writes as many tokens freely",
}
"""What a reader must know of the figures."""

Rate = Callable[[Measurement], float | None]


@dataclass(frozen=True, slots=True)
class Contestants:
    """The runs of one task side by side, by mode."""

    by_mode: dict[str, Measurement]

    @property
    def identical(self) -> bool:
        """Whether all modes of ours wrote the same tokens."""
        return len({self.by_mode[mode].tokens for mode in MODES if mode in self.by_mode}) == 1

    def rate(self, mode: str, rate: Rate) -> float | None:
        """A mode's rate; None if it was not run or was over too soon."""
        if mode == BEST:
            return max(filter(None, (self.rate(each, rate) for each in SPECULATIVE)), default=None)
        return rate(self.by_mode[mode]) if mode in self.by_mode else None

    def ratio(self, above: str, below: str, rate: Rate) -> float | None:
        """How many times faster one mode was than another."""
        first, second = self.rate(above, rate), self.rate(below, rate)
        return first / second if first and second else None


def summarize(measurements: Sequence[Measurement]) -> dict[str, dict[str, Any]]:
    """Medians by category, as `agentspec bench --json` prints them under `categories`."""
    groups: dict[str, dict[tuple[str, int], dict[str, Measurement]]] = {}
    for each in measurements:
        tasks = groups.setdefault(each.task.category, {})
        tasks.setdefault((each.task.name, each.run), {})[each.mode] = each
    return {
        name: _category([Contestants(found) for found in groups[name].values()])
        for name in CATEGORIES
        if name in groups
    }


def _category(sides: Sequence[Contestants]) -> dict[str, Any]:
    first = [side for side in sides if side.by_mode[OURS].run == 0]
    ours = {mode: _stats(side.by_mode[mode] for side in sides) for mode in MODES if mode in sides[0].by_mode}
    return {
        "tokens": ours[OURS].tokens,
        "identical": all(side.identical for side in sides),
        "tokens_per_forward": {mode: round(stats.tokens / stats.forwards, 3) for mode, stats in ours.items()},
        "rates": _rates(sides, lambda run: run.rate),
        "ratios": _ratios(sides, lambda run: run.rate),
        "end_to_end_rates": _rates(first, lambda run: run.end_to_end),
        "end_to_end_ratios": _ratios(first, lambda run: run.end_to_end),
        "outside_forwards": {mode: _outside(stats) for mode, stats in ours.items()},
        "drafting": {mode: _share(stats.propose_ms, stats) for mode, stats in ours.items()},
        "picks": {mode: _share(stats.pick_ms, stats) for mode, stats in ours.items()},
    }


def _rates(sides: Sequence[Contestants], rate: Rate) -> dict[str, float | None]:
    modes = [mode for mode in (*MODES, *OTHERS.values()) if mode in sides[0].by_mode]
    return {mode: median_of(side.rate(mode, rate) for side in sides) for mode in modes}


def _ratios(sides: Sequence[Contestants], rate: Rate) -> dict[str, float | None]:
    ours = [mode for mode in MODES[1:] if mode in sides[0].by_mode]
    pairs = [(mode, PLAIN) for mode in ours]
    if THEIRS in sides[0].by_mode:
        pairs += [(mode, other) for mode in ours for other in (THEIRS, BEST)] + [(PLAIN, THEIRS)]
    return {f"{above} / {below}": median_of(side.ratio(above, below, rate) for side in sides) for above, below in pairs}


def _stats(runs: Iterable[Measurement]) -> Stats:
    return Stats.of(run.stats for run in runs if run.stats)


def _outside(stats: Stats) -> float | None:
    """Share of the decoding rounds outside the target's forwards and outside drafting, picks included."""
    return _share(stats.decode_ms - stats.forward_ms - stats.propose_ms, stats)


def _share(part_ms: float, stats: Stats) -> float | None:
    return round(part_ms / stats.decode_ms, 4) if stats.decode_ms else None


def measurement_wire(run: Measurement) -> dict[str, Any]:
    """One run, as `--json` prints it."""
    return {
        "task": run.task.name,
        "category": run.task.category,
        "mode": run.mode,
        "run": run.run,
        "tokens": len(run.tokens),
        "first_tokens": run.first_tokens,
        "first_seconds": round(run.first_seconds, 4),
        "seconds": round(run.seconds, 4),
    } | ({"stats": run.stats.to_dict()} if run.stats else {})
