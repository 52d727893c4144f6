"""How much to draft, and whom to ask: one trade between what a guess may bring and the time that it takes here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentspec.acceptance import AcceptanceTable, ReachTable, YieldTable
from agentspec.cost import ONE_WIDTH, CostTable, DraftTimes
from agentspec.draft import Draft
from agentspec.probes import Probes
from agentspec.segments import Segment
from agentspec.trace import StepRecord

_FREE = 0.002
"""A call that costs less than this part of a token is not worth a thought."""

_LIKELY = 0.5
"""Where a place is reached with a smaller chance, that is why nobody is asked there: no reason to try all the same."""


def best_size(gains: Sequence[float], cost: Callable[[int], float], rate: float) -> int:
    """The number of nodes that a round should verify for the most tokens per second in the long run.

    A token that is not guessed now is made in a later round, at the rate that rounds make: time spent here is worth
    `rate` tokens a unit. (The size with the best `expected / cost` of this round alone is the same where all rounds are
    alike, and too small where good drafts come now and then.)

    Args:
        gains: Each node's chance of being accepted at all, in the order in which nodes would be kept, in 0..1.
        cost: Time of a round that verifies so many nodes, any unit, above 0. Need not be convex.
        rate: Tokens per unit of time that rounds like this one make, above 0.

    Returns:
        The smallest `n` that maximises `1 + sum(gains[:n]) - rate * cost(n)`.
    """
    best, most, expected = 0, 1 - rate * cost(0), 1.0
    for size, gain in enumerate(gains, start=1):
        expected += gain
        surplus = expected - rate * cost(size)
        if surplus > most:
            best, most = size, surplus
    return best


class SpeculationController:
    """Decides, without touching a device, whom to ask for a draft and how much of it is verified.

    Args:
        max_draft: The most nodes for one request and round.
        cost: Of a forward.
    """

    def __init__(self, *, max_draft: int, cost: CostTable) -> None:
        self._max_draft = max_draft
        self._cost = cost
        self._accepted = AcceptanceTable()
        self._reached = ReachTable()
        self._yields = YieldTable()
        self._draft_times = DraftTimes()
        self._paces: dict[Segment, _Pace] = {}
        self._node_probes = Probes(growth=2, rarest=256)
        self._call_probes = Probes(growth=4, rarest=4096)
        self._rows = 1

    def budget(self, segment: Segment, rows: int) -> int:
        """The most nodes that could pay for one of `rows` requests, if every one of them were accepted."""
        return best_size([1.0] * self._max_draft, self._round_cost(rows), self._pace(segment, rows))

    def rate(self, segment: Segment) -> float:
        """Tokens per second that a request makes in this segment, or would make without drafts; 0 before it is known.

        Never below plain decoding's rate: a source that slows a request down must not be judged by the slow rate.
        """
        return 1000 * self._pace(segment, self._rows) / self._cost.base_ms if self._cost.base_ms else 0.0

    def chance(self, source: str, segment: Segment, score: float, depth: int = 0) -> float:
        """A node's calibrated chance of being accepted once its parent is, in 0..1."""
        return self._accepted.chance(source, segment, score, depth)

    def introduce(self, proposer: str, sources: Sequence[str]) -> None:
        """Hear which sources the nodes of a proposer may name, so that it is credited with them."""
        self._yields.introduce(proposer, sources)

    def asks(self, proposer: str, segment: Segment, reach: float, rows: int) -> bool:
        """Whether to ask a proposer for a draft at a place: what its call brings there against the time that it takes.

        One whose calls take next to no time is always asked. One that doesn't pay is asked all the same now and then,
        ever more rarely, to see whether that has changed. Asking is counted: follow a True by the call.

        Args:
            proposer: Its name.
            segment: Of the place.
            reach: The chance that the place is reached, in 0..1.
            rows: How many requests share the call.
        """
        price = self._draft_times.seconds(proposer) * self.rate(segment)
        if price < _FREE:
            return True
        share = min(rows, self._rows) / self._rows
        pays = reach * self._yields.per_call(proposer, segment) * share >= price
        if pays or (reach > _LIKELY and self._call_probes.due((proposer, segment))):
            self._yields.asked(proposer, segment, reach)
            return True
        return False

    def trim(self, draft: Draft, segments: Sequence[Segment], rows: int) -> Draft:
        """The part of the draft whose nodes bring more than they cost, for one of `rows` requests.

        Now and then it is one node more, to see whether the first that was cut would do by now.
        """
        if not len(draft):
            return draft
        depths = draft.depths()
        reach = self._reach(draft, segments, depths)
        order = sorted(range(len(draft)), key=lambda node: -reach[node])
        gains = [self._reached.chance(segments[node], reach[node]) for node in order[: self._max_draft]]
        cost, rate = self._round_cost(rows), self._pace(segments[0], rows)
        size = best_size(gains, cost, rate)
        if size < len(gains):
            cut = order[size]
            loss = rate * (cost(size + 1) - cost(size)) - gains[size]
            size += self._node_probes.due((draft.sources[cut], segments[cut], 1 + depths[cut]), loss=loss)
        return draft if size == len(draft) else draft.cut(order[:size])

    def observe(self, record: StepRecord) -> None:
        """Learn from a decoding round of one request."""
        self._rows = record.rows
        reach = self._reach(record.draft, record.segments, record.draft.depths())
        self._reached.observe(record.segments, reach, record.path)
        self._accepted.observe(record.draft, record.path, record.segments)
        self._yields.observe(record)
        for level, node in enumerate(record.path, start=1):
            source, segment = record.draft.sources[node], record.segments[node]
            self._call_probes.succeeded((self._yields.proposer(source), segment))
            self._node_probes.succeeded((source, segment, level))
        took = self._cost.relative(record.width, record.rows)
        if self._cost.base_ms:
            took += min(record.propose_ms / self._cost.base_ms, 8 * took)
        plain = self._cost.relative(record.rows, record.rows)
        self._paces.setdefault(record.segment, _Pace()).observe(len(record.tokens), took / plain)

    def observe_forward(self, width: int, forward_ms: float, rows: int = 1) -> None:
        """Learn what a decoding forward of so many tokens, for so many requests, cost."""
        self._cost.observe(width, forward_ms, rows)

    def observe_draft(self, proposer: str, seconds: float) -> None:
        """Learn what a call of a proposer took."""
        self._draft_times.observe(proposer, seconds)

    def _reach(self, draft: Draft, segments: Sequence[Segment], depths: Sequence[int]) -> Sequence[float]:
        """Each node's chance of being accepted at all, as the chances along its path promise it."""
        return draft.reach(list(map(self._accepted.chance, draft.sources, segments, draft.scores, depths)))

    def _round_cost(self, rows: int) -> Callable[[int], float]:
        return lambda size: self._cost.relative(rows * (1 + size), rows)

    def _pace(self, segment: Segment, rows: int) -> float:
        """Tokens of one request per forward of one token, in rounds of `rows` requests."""
        pace = self._paces.get(segment)
        return (max(pace.gain, 1.0) if pace else 1.0) / self._cost.relative(rows, rows)


class FixedController(SpeculationController):
    """A controller that asks everyone and lets every draft through, up to a fixed size; for tests and comparisons.

    Args:
        size: Nodes for one request and round.
    """

    def __init__(self, size: int) -> None:
        super().__init__(max_draft=size, cost=CostTable(ONE_WIDTH))
        self._size = size

    def budget(self, segment: Segment, rows: int) -> int:
        """The fixed size."""
        return self._size

    def rate(self, segment: Segment) -> float:
        """Unknown: no guess is ever too slow."""
        return 0.0

    def asks(self, proposer: str, segment: Segment, reach: float, rows: int) -> bool:
        """Always."""
        return True

    def trim(self, draft: Draft, segments: Sequence[Segment], rows: int) -> Draft:
        """The draft as it is."""
        return draft

    def observe(self, record: StepRecord) -> None:
        """Nothing to learn."""


class _Pace:
    """Tokens per round of plain decoding's time, over the last few dozen rounds."""

    _PACE = 0.05

    def __init__(self) -> None:
        self._tokens = self._time = 1.0

    @property
    def gain(self) -> float:
        """How many times as fast as plain decoding."""
        return self._tokens / self._time

    def observe(self, tokens: int, time: float) -> None:
        """Count a round."""
        self._tokens += self._PACE * (tokens - self._tokens)
        self._time += self._PACE * (time - self._time)
