"""What a replay found: each turn answered plainly and speculatively, and the sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentspec.replay.traces import Skipped
from agentspec.trace import Stats, by_source


@dataclass(frozen=True, slots=True)
class TurnReport:
    """One turn, answered twice by one model from the same prefilled prompt.

    Attributes:
        trace_id: Of the conversation.
        index: Of the recorded message that was answered anew.
        prompt_tokens: Length of the prompt.
        tokens: Length of the speculative answer, end token included.
        plain_forwards: Forwards of the plain answer.
        plain_seconds: Time of the plain answer's rounds, from the prefilled prompt on.
        prefill_seconds: Time in which the prompt was read, by the draft model too where it was asked.
        identical: Whether both answers have the same tokens and finish reason.
        finish_reason: Of the speculative answer.
        stats: Of the speculative answer.
    """

    trace_id: str
    index: int
    prompt_tokens: int
    tokens: int
    plain_forwards: int
    plain_seconds: float
    prefill_seconds: float
    identical: bool
    finish_reason: str
    stats: Stats

    @property
    def forwards(self) -> int:
        """Forwards of the speculative answer."""
        return self.stats.forwards

    @property
    def seconds(self) -> float:
        """Time of the speculative answer's rounds, from the prefilled prompt on."""
        return rounds_seconds(self.stats)

    @property
    def wire(self) -> dict[str, Any]:
        """As reports show it."""
        return {
            "trace_id": self.trace_id,
            "index": self.index,
            "prompt_tokens": self.prompt_tokens,
            "tokens": self.tokens,
            "forwards": self.forwards,
            "plain_forwards": self.plain_forwards,
            "seconds": round(self.seconds, 4),
            "plain_seconds": round(self.plain_seconds, 4),
            "prefill_seconds": round(self.prefill_seconds, 4),
            "speedup": ratio(self.plain_seconds, self.seconds),
            "identical": self.identical,
            "finish_reason": self.finish_reason,
            "by_source": by_source(self.stats.drafted, self.stats.accepted),
            "by_segment": _by_segment(self.stats),
        }


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
        tokens, forwards = sum(turn.tokens for turn in self.turns), sum(turn.forwards for turn in self.turns)
        seconds, plain = sum(turn.seconds for turn in self.turns), sum(turn.plain_seconds for turn in self.turns)
        return {
            "turns": len(self.turns),
            "skipped": len(self.skipped),
            "tokens": tokens,
            "forwards": forwards,
            "plain_forwards": sum(turn.plain_forwards for turn in self.turns),
            "seconds": round(seconds, 4),
            "plain_seconds": round(plain, 4),
            "prefill_seconds": round(sum(turn.prefill_seconds for turn in self.turns), 4),
            "speedup": ratio(plain, seconds),
            "tokens_per_forward": ratio(tokens, forwards),
            "identical": self.identical,
        }

    @property
    def wire(self) -> dict[str, Any]:
        """As `agentspec replay --json` prints it."""
        stats = _merged([turn.stats for turn in self.turns])
        return {
            "turns": [turn.wire for turn in self.turns],
            "total": self.total,
            "by_source": by_source(stats.drafted, stats.accepted),
            "by_segment": _by_segment(stats),
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
    return f"{faster(total['speedup'])}: {tokens}, {same}"


def faster(speedup: float) -> str:
    """A ratio of times in words."""
    return f"{speedup:.1f}x faster" if speedup >= 1 else f"{1 / speedup:.1f}x slower"


def rounds_seconds(stats: Stats) -> float:
    """Time of every round that `stats.forwards` counts, for an answer whose prompt was in the prefix cache."""
    return (stats.prefill_ms + stats.decode_ms) / 1000


def ratio(above: float, below: float) -> float | None:
    """Rounded as reports show ratios; None where there is nothing to divide by."""
    return round(above / below, 3) if below else None


def _merged(parts: Sequence[Stats]) -> Stats:
    whole = Stats()
    for part in parts:
        whole.merge(part)
    return whole


def _by_segment(stats: Stats) -> dict[str, dict[str, float | None]]:
    def entry(counts: Counter[str]) -> dict[str, float | None]:
        names = ("tokens", "forwards", "drafted", "accepted")
        per_forward = ratio(counts["tokens"], counts["forwards"])
        return {name: counts[name] for name in names} | {"tokens_per_forward": per_forward}

    return {name: entry(counts) for name, counts in sorted(stats.segments.items())}
