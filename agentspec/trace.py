"""What a round did, and sums over rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from agentspec.draft import ROOT, Draft
from agentspec.segments import Segment

_TIMES = ("prefill_ms", "decode_ms", "forward_ms", "propose_ms", "pick_ms")


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One request's part of one round that gave it tokens.

    Attributes:
        request_id: Whose round.
        segment: Where its first token stands.
        draft: What was verified.
        segments: Where each node of the draft stands.
        path: The accepted nodes that were committed.
        tokens: What the round wrote, the target's own token included.
        rows: Requests in the forward.
        width: Tokens that went through the model, of all requests.
        propose_ms: Time that drafting took, of all requests.
        forward_ms: Time that the forward took.
        total_ms: Time of the whole round.
        pick_ms: Time that this request's picks took, masks of its grammar included.
    """

    request_id: int
    segment: Segment
    draft: Draft
    segments: tuple[Segment, ...]
    path: tuple[int, ...]
    tokens: tuple[int, ...]
    rows: int
    width: int
    propose_ms: float
    forward_ms: float
    total_ms: float
    pick_ms: float = 0.0

    @property
    def token_segments(self) -> tuple[Segment, ...]:
        """Where each token of the round stands.

        Behind a draft that was accepted to its end, the target's own token is said to stand where the last node does.
        """
        accepted = [self.segments[node] for node in self.path]
        if len(self.tokens) == len(self.path):
            return tuple(accepted)
        last = self.path[-1] if self.path else ROOT
        beside = [self.segments[node] for node, parent in enumerate(self.draft.parents) if parent == last]
        return (*accepted, beside[0] if beside else accepted[-1] if accepted else self.segment)


@dataclass(slots=True)
class Stats:
    """Sums over one request's rounds.

    Attributes:
        forwards: Forwards that gave tokens, the one that finished the prompt included.
        tokens: What they gave.
        drafted: Draft nodes verified, by source; 0 for a source that was asked and never guessed.
        accepted: Draft nodes accepted, by source, likewise.
        segments: The same four by segment, `{"json_key": {"forwards": 3, "tokens": 9, ...}}`: forwards by where their
            first token stands, the others each by its own place.
        prefill_tokens: Prompt tokens that went through the model; the rest came from the prefix cache.
        prefill_ms: From the request's admission to its first token.
        decode_ms: From its first token to its last.
        forward_ms: Of `decode_ms`, inside the target's forwards.
        propose_ms: Of `decode_ms`, drafting.
        pick_ms: Of `decode_ms`, the target's picks, masks of the grammar included.
    """

    forwards: int = 0
    tokens: int = 0
    drafted: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    segments: dict[str, Counter[str]] = field(default_factory=dict)
    prefill_tokens: int = 0
    prefill_ms: float = 0.0
    decode_ms: float = 0.0
    forward_ms: float = 0.0
    propose_ms: float = 0.0
    pick_ms: float = 0.0

    def add(self, record: StepRecord) -> None:
        """Count a round. The one that finished the prompt counts as prefill time, the others as decoding."""
        if self.forwards:
            self.decode_ms += record.total_ms
            self.forward_ms += record.forward_ms
            self.propose_ms += record.propose_ms
            self.pick_ms += record.pick_ms
        else:
            self.prefill_ms += record.total_ms
        accepted = [record.draft.sources[node] for node in record.path]
        self.forwards += 1
        self.tokens += len(record.tokens)
        self.drafted.update(record.draft.sources)
        self.accepted.update(accepted)
        self._in(record.segment)["forwards"] += 1
        for segment in record.token_segments:
            self._in(segment)["tokens"] += 1
        for node, segment in enumerate(record.segments):
            counts = self._in(segment)
            counts["drafted"] += 1
            counts["accepted"] += node in record.path

    def _in(self, segment: Segment) -> Counter[str]:
        return self.segments.setdefault(segment.value, Counter())

    def merge(self, other: Stats) -> None:
        """Add another request's sums."""
        for name in ("forwards", "tokens", "prefill_tokens", *_TIMES):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.drafted.update(other.drafted)
        self.accepted.update(other.accepted)
        for segment, counts in other.segments.items():
            self.segments.setdefault(segment, Counter()).update(counts)

    @classmethod
    def of(cls, parts: Iterable[Stats]) -> Self:
        """The sums over several requests."""
        whole = cls()
        for part in parts:
            whole.merge(part)
        return whole

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for reports and JSON."""
        plain: dict[str, Any] = {
            "forwards": self.forwards,
            "tokens": self.tokens,
            "tokens_per_forward": round(self.tokens / self.forwards, 3) if self.forwards else 0.0,
            "drafted": dict(self.drafted),
            "accepted": dict(self.accepted),
            "segments": {name: dict(counts) for name, counts in self.segments.items()},
            "prefill_tokens": self.prefill_tokens,
        }
        for name in _TIMES:
            plain[name] = round(getattr(self, name), 3)
        return plain


def by_source(drafted: Mapping[str, int], accepted: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """Drafted, accepted and their ratio for each source, as reports show them."""
    return {
        source: {
            "drafted": count,
            "accepted": accepted.get(source, 0),
            "rate": round(accepted.get(source, 0) / count, 3) if count else 0.0,
        }
        for source, count in sorted(drafted.items())
    }
