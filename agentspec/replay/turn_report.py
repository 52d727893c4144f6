"""What became of one turn: its answers, plain, speculative and with fixed budgets, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentspec.figures import ratio
from agentspec.replay.categories import Category
from agentspec.replay.turns import Turn
from agentspec.trace import Stats, StepRecord, by_source


@dataclass(frozen=True, slots=True)
class Fixed:
    """A turn answered with a fixed budget.

    Attributes:
        forwards: Of the answer.
        seconds: Of its rounds.
        relative: Its seconds by the adaptive answer's beside it; above 1 the adaptive one was faster.
        by_source: What was drafted and accepted, as reports show it.
    """

    forwards: int
    seconds: float
    relative: float | None
    by_source: Mapping[str, Mapping[str, float]]

    @property
    def wire(self) -> dict[str, Any]:
        """As reports show it."""
        told = {"forwards": self.forwards, "seconds": round(self.seconds, 4), "relative": self.relative}
        return {**told, "by_source": self.by_source}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReport:
    """One turn, answered twice or more by one model from the same prefilled prompt; or its recorded answer, drafted.

    With several runs, seconds and ratios are the medians over them, and the speculative answer is that of the run in
    the middle. Seconds are None where no cost of a forward is known; without a model they are projected.

    Attributes:
        trace_id: Of the conversation.
        index: Of the recorded message that was answered anew.
        digest: Of the turn; see `Turn.digest`.
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
        identical: Whether all answers have the same tokens and finish reason; None: there is but one.
        finish_reason: Of the speculative answer.
        stats: Of the speculative answer.
        rounds: Of the speculative answer.
        fixed: Answers with fixed budgets, by budget.
        approximate: Whether the recorded message is not to the character what its model wrote.
        held: What the answer was held to: "required" or "auto" calls, "schema", or nothing ("free").
        joules: What the machine used meanwhile, by its own counters, for the speculative answer; None: it has none.
        plain_joules: Likewise, for the plain answer.
        loosened: Whether that is nothing since the recorded answer breaks what was asked.
    """

    trace_id: str
    index: int
    digest: str
    category: Category
    repeat: bool
    number: int
    prompt_tokens: int
    tokens: int
    plain_forwards: int
    plain_seconds: float | None
    seconds: float | None
    prefill_seconds: float | None
    speedup: float | None
    identical: bool | None
    finish_reason: str
    stats: Stats
    rounds: Sequence[StepRecord] = ()
    fixed: Mapping[int, Fixed] = field(default_factory=dict)
    approximate: bool = False
    held: str
    loosened: bool = False
    joules: float | None = None
    plain_joules: float | None = None

    @property
    def forwards(self) -> int:
        """Forwards of the speculative answer."""
        return self.stats.forwards

    @property
    def wire(self) -> dict[str, Any]:
        """As reports show it; see `agentspec.replay.wire`."""
        return {
            "trace_id": self.trace_id,
            "index": self.index,
            "digest": self.digest,
            "number": self.number,
            "category": self.category.value,
            "repeat": self.repeat,
            "approximate": self.approximate,
            "held": self.held,
            "loosened": self.loosened,
            "prompt_tokens": self.prompt_tokens,
            "tokens": self.tokens,
            "forwards": self.forwards,
            "plain_forwards": self.plain_forwards,
            "seconds": rounded(self.seconds),
            "plain_seconds": rounded(self.plain_seconds),
            "prefill_seconds": rounded(self.prefill_seconds),
            "speedup": self.speedup,
            "joules": rounded(self.joules),
            "plain_joules": rounded(self.plain_joules),
            "identical": self.identical,
            "finish_reason": self.finish_reason,
            "by_source": by_source(self.stats.drafted, self.stats.accepted),
            "by_segment": segments_wire(self.stats),
            "by_depth": depths_wire(self.rounds),
            "fixed": {str(size): found.wire for size, found in self.fixed.items()},
        }


def taken_over(turn: Turn) -> dict[str, Any]:
    """What a turn's report says of the recorded turn itself."""
    names = ("trace_id", "index", "digest", "category", "repeat", "number", "approximate")
    return {name: getattr(turn, name) for name in names}


def rounded(seconds: float | None) -> float | None:
    """As reports show times."""
    return None if seconds is None else round(seconds, 4)


def segments_wire(stats: Stats) -> dict[str, dict[str, float | None]]:
    """Counts by segment, as reports show them."""

    def entry(counts: Counter[str]) -> dict[str, float | None]:
        names = ("tokens", "forwards", "drafted", "accepted")
        per_forward = ratio(counts["tokens"], counts["forwards"])
        return {name: counts[name] for name in names} | {"tokens_per_forward": per_forward}

    return {name: entry(counts) for name, counts in sorted(stats.segments.items())}


def depths_wire(rounds: Iterable[StepRecord]) -> list[dict[str, float]]:
    """Counts by how deep in its draft a node stands, the first level at index 0, as reports show them."""
    drafted: Counter[int] = Counter()
    accepted: Counter[int] = Counter()
    for record in rounds:
        drafted.update(record.draft.depths())
        accepted.update(range(len(record.path)))
    return [
        {"drafted": drafted[depth], "accepted": accepted[depth], "rate": round(accepted[depth] / drafted[depth], 3)}
        for depth in range(len(drafted))
    ]
