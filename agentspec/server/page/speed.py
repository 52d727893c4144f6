"""An estimate of what speculation is worth, from the rounds of a running server: nothing is answered twice."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Self

from agentspec.trace import StepRecord

_LEAST = 5
_KEPT = 200


@dataclass(frozen=True, slots=True)
class Pace:
    """Of an answer behind its first round, which had the prompt to read.

    Attributes:
        took_ms: Time of its rounds.
        tokens: What they gave, by the number of requests that shared the round.
    """

    took_ms: float
    tokens: Mapping[int, int]

    @classmethod
    def of(cls, rounds: Sequence[StepRecord]) -> Self:
        """The pace of an answer with these rounds."""
        tokens: Counter[int] = Counter()
        for record in rounds[1:]:
            tokens[record.rows] += len(record.tokens)
        return cls(sum(record.total_ms for record in rounds[1:]), tokens)


@dataclass(slots=True)
class PlainRounds:
    """Learns what a round takes in which nothing was drafted, by the number of requests in it.

    Such rounds come now and then in almost every answer; one of them gives each of its requests a token, as plain
    decoding would.
    """

    _times: dict[int, deque[float]] = field(default_factory=dict)

    def observe(self, rounds: Sequence[StepRecord]) -> None:
        """Count an answer's rounds."""
        for record in rounds[1:]:
            if record.width == record.rows:
                self._times.setdefault(record.rows, deque(maxlen=_KEPT)).append(record.total_ms - record.propose_ms)

    def token_ms(self, rows: int = 1) -> float | None:
        """Of plain decoding, for one of so many requests in a batch; of fewer ones, which is less, if need be."""
        known = [number for number, times in self._times.items() if number <= rows and len(times) >= _LEAST]
        return median(self._times[max(known)]) if known else None

    def speedup(self, paces: Iterable[Pace]) -> float | None:
        """How many times as fast as plain decoding some answers were; None: too few plain rounds were seen."""
        took_ms, plain_ms = 0.0, 0.0
        for pace in paces:
            took_ms += pace.took_ms
            for rows, tokens in pace.tokens.items():
                token_ms = self.token_ms(rows)
                if token_ms is None:
                    return None
                plain_ms += tokens * token_ms
        return plain_ms / took_ms if took_ms else None
