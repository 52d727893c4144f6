"""How much to draft: one trade between what a guess may bring and what a wider forward costs on this machine."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from agentspec.draft import Draft
from agentspec.segments import Segment
from agentspec.trace import StepRecord

Key = tuple[str, Segment, int]


def best_size(gains: Sequence[float], cost: Callable[[int], float]) -> int:
    """The number of nodes at which a round makes the most tokens for its time.

    Args:
        gains: Each node's chance of being accepted at all, in the order in which nodes would be kept, in 0..1.
        cost: Time of a round that verifies so many nodes, any unit, above 0.

    Returns:
        The smallest `n` that maximises `(1 + sum(gains[:n])) / cost(n)`.
    """
    best, best_rate, expected = 0, 1 / cost(0), 1.0
    for size, gain in enumerate(gains, start=1):
        expected += gain
        rate = expected / cost(size)
        if rate > best_rate:
            best, best_rate = size, rate
    return best


class AcceptanceTable:
    """How often nodes of a source were accepted in a segment, by how sure the source was (a tenth of its score).

    Starts at the source's own word and believes what it sees more and more; what it saw fades, so a source that was
    given up is tried again after a while.
    """

    def __init__(self, *, prior_weight: float = 8.0, half_life: int = 400) -> None:
        self._prior_weight = prior_weight
        self._decay = 0.5 ** (1 / half_life)
        self._seen: dict[Key, tuple[float, float, int]] = {}
        self._round = 0

    def chance(self, source: str, segment: Segment, score: float) -> float:
        """P(node accepted | its parent accepted), in 0..1, for a node that its source gives `score`."""
        trials, accepted = self._faded((source, segment, int(score * 10)))
        return (self._prior_weight * score + accepted) / (self._prior_weight + trials)

    def observe(self, draft: Draft, path: Sequence[int], segments: Sequence[Segment]) -> None:
        """Count a verified draft: each node on or right below the accepted path was put to the test."""
        self._round += 1
        reached = {-1, *path}
        for node, parent in enumerate(draft.parents):
            if parent in reached:
                key = (draft.sources[node], segments[node], int(draft.scores[node] * 10))
                trials, accepted = self._faded(key)
                self._seen[key] = (trials + 1, accepted + (node in reached), self._round)

    def _faded(self, key: Key) -> tuple[float, float]:
        trials, accepted, last = self._seen.get(key, (0.0, 0.0, 0))
        left = self._decay ** (self._round - last)
        return trials * left, accepted * left


class CostTable:
    """Time of a forward by its width, relative to a width of 1, learned from the forwards that were run.

    Args:
        shape: Width to relative cost before anything was seen, 1 for the width 1.
    """

    _PACE = 0.1

    def __init__(self, shape: dict[int, float]) -> None:
        self._widths = sorted(shape)
        self._costs = [shape[width] for width in self._widths]
        self.base_ms = 0.0
        """Time of a forward of width 1, as last believed; 0 before the first observation."""

    def relative(self, width: int) -> float:
        """Cost of a forward of this width in forwards of width 1; straight lines between the known widths."""
        widths, costs = self._widths, self._costs
        right = min(max(bisect_left(widths, width), 1), len(widths) - 1)
        left = right - 1
        slope = (costs[right] - costs[left]) / (widths[right] - widths[left])
        return max(costs[left] + slope * (width - widths[left]), 1.0)

    def observe(self, width: int, forward_ms: float) -> None:
        """Count a decoding forward."""
        if self.base_ms == 0:
            self.base_ms = forward_ms / self.relative(width)
        relative = forward_ms / self.base_ms
        nearest = min(range(len(self._widths)), key=lambda index: abs(self._widths[index] - width))
        if nearest:
            surprise = min(max(relative / self.relative(width), 0.5), 2.0)
            self._costs[nearest] *= 1 + self._PACE / 2 * (surprise - 1)
            self._straighten(nearest)
        self.base_ms += self._PACE * (forward_ms / self.relative(width) - self.base_ms)

    def _straighten(self, moved: int) -> None:
        """A wider forward never costs less."""
        for index in range(moved, len(self._costs) - 1):
            self._costs[index + 1] = max(self._costs[index + 1], self._costs[index])
        for index in range(moved, 0, -1):
            self._costs[index - 1] = min(self._costs[index - 1], self._costs[index])


class SpeculationController:
    """Decides, without touching a device, how long each draft may be.

    Args:
        max_draft: The most nodes for one request and round.
        cost: Of a forward by width.
    """

    def __init__(self, *, max_draft: int, cost: CostTable) -> None:
        self._max_draft = max_draft
        self._cost = cost
        self._table = AcceptanceTable()
        self._rates: dict[Segment, float] = {}

    def budget(self, segment: Segment, rows: int) -> int:
        """The most nodes that could pay for one of `rows` requests, if every one of them were accepted."""
        return best_size([1.0] * self._max_draft, lambda size: self._cost.relative(rows * (1 + size)))

    def rate(self, segment: Segment) -> float:
        """Tokens per second that a request makes in this segment, or would make without drafts; 0 before it is known.

        Never below plain decoding's rate: a source that slows a request down must not be judged by the slow rate.
        """
        plain = 1000 / self._cost.base_ms if self._cost.base_ms else 0.0
        return max(self._rates.get(segment, 0.0), plain)

    def chance(self, source: str, segment: Segment, score: float, depth: int = 0) -> float:
        """A node's calibrated chance of being accepted once its parent is, in 0..1."""
        return self._table.chance(source, segment, score)

    def trim(self, draft: Draft, segments: Sequence[Segment], rows: int) -> Draft:
        """The part of the draft whose nodes bring more than they cost, for one of `rows` requests."""
        reach: list[float] = []
        for node, parent in enumerate(draft.parents):
            chance = self._table.chance(draft.sources[node], segments[node], draft.scores[node])
            reach.append(chance if parent < 0 else chance * reach[parent])
        order = sorted(range(len(draft)), key=lambda node: -reach[node])
        size = best_size([reach[node] for node in order], lambda size: self._cost.relative(rows * (1 + size)))
        return draft if size == len(draft) else draft.cut(order[:size])

    def observe(self, record: StepRecord) -> None:
        """Learn from a decoding round of one request."""
        self._table.observe(record.draft, record.path, record.segments)
        rate = 1000 * len(record.tokens) / max(record.total_ms, 1e-6)
        known = self._rates.get(record.segment, rate)
        self._rates[record.segment] = known + 0.1 * (rate - known)

    def observe_forward(self, width: int, forward_ms: float) -> None:
        """Learn what a decoding forward cost."""
        self._cost.observe(width, forward_ms)


CPU_SHAPE = {1: 1.0, 2: 1.04, 4: 1.2, 8: 1.7, 16: 3.0, 32: 5.8}
"""First belief for packed weights on a CPU (measured over whole forwards of 0.5B and 1.5B models, two cores)."""

DEVICE_SHAPE = {1: 1.0, 8: 1.02, 16: 1.05, 32: 1.1, 64: 1.25, 128: 1.8}
"""First belief for a GPU, where a forward of few rows is bound by memory."""
