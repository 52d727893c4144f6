"""What became of one turn: its answers, plain, speculative and with fixed budgets, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentspec.figures import ratio
from agentspec.replay.categories import Category
from agentspec.trace import Stats, by_source


@dataclass(frozen=True, slots=True)
class Fixed:
    """A turn answered with a fixed budget.

    Attributes:
        forwards: Of the answer.
        seconds: Of its rounds.
        relative: Its seconds by the adaptive answer's beside it; above 1 the adaptive one was faster.
    """

    forwards: int
    seconds: float
    relative: float | None

    @property
    def wire(self) -> dict[str, Any]:
        """As reports show it."""
        return {"forwards": self.forwards, "seconds": round(self.seconds, 4), "relative": self.relative}


@dataclass(frozen=True, slots=True)
class TurnReport:
    """One turn, answered twice or more by one model from the same prefilled prompt.

    With several runs, seconds and ratios are the medians over them, and the speculative answer is that of the run in
    the middle.

    Attributes:
        trace_id: Of the conversation.
        index: Of the recorded message that was answered anew.
        category: Of the recorded message.
        repeat: Whether an earlier line holds the same task.
        number: Which of its conversation's turns, from 1.
        prompt_tokens: Length of the prompt.
        tokens: Length of the speculative answer, end token included.
        plain_forwards: Forwards of the plain answer.
        plain_seconds: Time of the plain answer's rounds, from the prefilled prompt on.
        seconds: Likewise, of the speculative answer.
        prefill_seconds: Time in which the prompt was read, by the draft model too where it was asked.
        speedup: Plain seconds by speculative seconds; None where that is 0.
        identical: Whether all answers have the same tokens and finish reason.
        finish_reason: Of the speculative answer.
        stats: Of the speculative answer.
        fixed: Answers with fixed budgets, by budget.
        approximate: Whether the recorded message is not to the character what its model wrote.
    """

    trace_id: str
    index: int
    category: Category
    repeat: bool
    prompt_tokens: int
    tokens: int
    plain_forwards: int
    plain_seconds: float
    seconds: float
    prefill_seconds: float
    speedup: float | None
    identical: bool
    finish_reason: str
    stats: Stats
    fixed: Mapping[int, Fixed] = field(default_factory=dict)
    number: int = 1
    approximate: bool = False

    @property
    def forwards(self) -> int:
        """Forwards of the speculative answer."""
        return self.stats.forwards

    @property
    def wire(self) -> dict[str, Any]:
        """As reports show it."""
        fixed = {"fixed": {str(size): found.wire for size, found in self.fixed.items()}} if self.fixed else {}
        return {
            "trace_id": self.trace_id,
            "index": self.index,
            "category": self.category.value,
            "repeat": self.repeat,
            "approximate": self.approximate,
            "prompt_tokens": self.prompt_tokens,
            "tokens": self.tokens,
            "forwards": self.forwards,
            "plain_forwards": self.plain_forwards,
            "seconds": round(self.seconds, 4),
            "plain_seconds": round(self.plain_seconds, 4),
            "prefill_seconds": round(self.prefill_seconds, 4),
            "speedup": self.speedup,
            "identical": self.identical,
            "finish_reason": self.finish_reason,
            "by_source": by_source(self.stats.drafted, self.stats.accepted),
            "by_segment": segments_wire(self.stats),
            **fixed,
        }


def segments_wire(stats: Stats) -> dict[str, dict[str, float | None]]:
    """Counts by segment, as reports show them."""

    def entry(counts: Counter[str]) -> dict[str, float | None]:
        names = ("tokens", "forwards", "drafted", "accepted")
        per_forward = ratio(counts["tokens"], counts["forwards"])
        return {name: counts[name] for name in names} | {"tokens_per_forward": per_forward}

    return {name: entry(counts) for name, counts in sorted(stats.segments.items())}
