"""How often guesses come true: learned from every verified draft, forgotten as the conversation moves on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log

from agentspec.draft import ROOT, Draft
from agentspec.segments import Segment
from agentspec.trace import StepRecord

Key = tuple[str | int, ...]

_DEEPEST = 8
_SUREST = 4


class AcceptanceTable:
    """The chance of a node, by its source, its segment, how sure the source was, and its depth in the draft.

    It starts at the source's own word. What is seen of a source as a whole, and of the source in a segment, shifts that
    word's log odds; what is seen of equally sure nodes, and of those at like depth, then takes its place. Each of the
    four leans on the one above as on a few observations of its own (empirical Bayes), so a few dozen nodes are enough.

    Args:
        prior_weight: Observations that the level above is worth.
        half_life: Observations after which one counts half.
    """

    def __init__(self, *, prior_weight: float = 6.0, half_life: float = 60.0) -> None:
        self._weight = prior_weight
        self._decay = 0.5 ** (1 / half_life)
        self._counts: dict[Key, _Count] = {}
        self._known: dict[tuple[str, Segment, float, int], float] = {}  # since the last observation

    def chance(self, source: str, segment: Segment, score: float, depth: int = 0) -> float:
        """P(node accepted | its parent accepted), in 0..1, for a node that its source gives `score`."""
        asked = source, segment, score, depth
        known = self._known.get(asked)
        if known is None:
            known = self._known[asked] = self._chance(source, segment, score, depth)
        return known

    def _chance(self, source: str, segment: Segment, score: float, depth: int) -> float:
        of_source, of_segment, of_score, of_depth = (
            self._counts.get(key, _NOTHING) for key in _keys(source, segment, score, depth)
        )
        shift = of_segment.shift(of_source.shift(0.0, self._weight), self._weight)
        likely = _squash(_log_odds(score) + shift)
        return of_depth.share(of_score.share(likely, self._weight), self._weight)

    def observe(self, draft: Draft, path: Sequence[int], segments: Sequence[Segment]) -> None:
        """Count a verified draft: each node on or right below the accepted path was put to the test."""
        self._known.clear()
        reached, depths = {ROOT, *path}, draft.depths()
        for node, parent in enumerate(draft.parents):
            if parent in reached:
                score = draft.scores[node]
                for key in _keys(draft.sources[node], segments[node], score, depths[node]):
                    count = self._counts.setdefault(key, _Count())
                    count.add(score, node in reached, self._decay)


class ReachTable:
    """What share of the nodes that were thought to be reached with some chance really were.

    A chain's chance is a product of chances that were each chosen for being high, so it promises too much; and unlike a
    node's own chance, its reach is put to the test in every round. Learned by segment and by the promise's log odds.

    Args:
        prior_weight: Observations that the level above is worth; at the top, the promise itself.
        half_life: Observations after which one counts half.
    """

    def __init__(self, *, prior_weight: float = 8.0, half_life: float = 240.0) -> None:
        self._weight = prior_weight
        self._decay = 0.5 ** (1 / half_life)
        self._counts: dict[Key, _Count] = {}

    def chance(self, segment: Segment, reach: float) -> float:
        """P(node accepted), in 0..1, for one that is promised to be reached and right with a chance of `reach`."""
        of_all, of_segment = (self._counts.get(key, _NOTHING) for key in _reach_keys(segment, reach))
        shift = of_segment.shift(of_all.shift(0.0, self._weight), self._weight)
        return _squash(_log_odds(reach) + shift)

    def observe(self, segments: Sequence[Segment], reach: Sequence[float], path: Sequence[int]) -> None:
        """Count the nodes of a verified draft."""
        for node, (segment, promised) in enumerate(zip(segments, reach, strict=True)):
            for key in _reach_keys(segment, promised):
                self._counts.setdefault(key, _Count()).add(promised, node in path, self._decay)


class YieldTable:
    """Accepted nodes per call of a proposer, by the segment in which it was asked, each call weighed by its reach."""

    _WEIGHT, _DECAY = 4.0, 0.98

    def __init__(self) -> None:
        self._sums: dict[tuple[str, Segment | None], tuple[float, float]] = {}
        self._proposers: dict[str, str] = {}

    def introduce(self, proposer: str, sources: Iterable[str]) -> None:
        """Credit nodes of these sources to a proposer; others are credited to one of their own name."""
        self._proposers.update(dict.fromkeys(sources, proposer))

    def proposer(self, source: str) -> str:
        """Who is credited with a source's nodes."""
        return self._proposers.get(source, source)

    def per_call(self, proposer: str, segment: Segment) -> float:
        """Nodes that a call brings once its place is reached; one, until something else was seen."""
        found = 1.0
        for key in ((proposer, None), (proposer, segment)):
            calls, nodes = self._sums.get(key, (0.0, 0.0))
            found = (self._WEIGHT * found + nodes) / (self._WEIGHT + calls)
        return found

    def asked(self, proposer: str, segment: Segment, reach: float) -> None:
        """Count a call."""
        for key in ((proposer, None), (proposer, segment)):
            calls, nodes = self._sums.get(key, (0.0, 0.0))
            self._sums[key] = calls * self._DECAY + reach, nodes * self._DECAY

    def observe(self, record: StepRecord) -> None:
        """Count the accepted nodes of each proposer that was asked, where the run of its nodes began."""
        began: dict[int, tuple[str, Segment]] = {}
        draft = record.draft
        for node in record.path:
            proposer = self.proposer(draft.sources[node])
            above = began.get(draft.parents[node])
            began[node] = above if above and above[0] == proposer else (proposer, record.segments[node])
            for key in ((proposer, None), began[node]):
                if key in self._sums:
                    calls, nodes = self._sums[key]
                    self._sums[key] = calls, nodes + 1


class _Count:
    """Observations, how many of them were accepted, and how many the source's scores promised."""

    __slots__ = ("_excess", "accepted", "promised", "trials")

    def __init__(self) -> None:
        self.trials = self.accepted = self.promised = 0.0
        self._excess: float | None = 0.0  # None: not worked out since the last observation

    def add(self, score: float, accepted: bool, decay: float) -> None:
        self._excess = None
        self.trials = self.trials * decay + 1
        self.accepted = self.accepted * decay + accepted
        self.promised = self.promised * decay + score

    def share(self, prior: float, weight: float) -> float:
        """The accepted share, leaning on a prior one."""
        return (weight * prior + self.accepted) / (weight + self.trials)

    def shift(self, prior: float, weight: float) -> float:
        """By how much the log odds of what came true exceed those of what was promised, leaning on a prior shift."""
        if self._excess is None:
            self._excess = _log_ratio(self.accepted, self.trials) - _log_ratio(self.promised, self.trials)
        return (weight * prior + self.trials * self._excess) / (weight + self.trials)


_NOTHING = _Count()


def _keys(source: str, segment: Segment, score: float, depth: int) -> tuple[Key, Key, Key, Key]:
    """From the coarsest to the finest; deep nodes share a depth, sureness is told apart by whole log odds."""
    sure, deep = _sureness(score), min(depth, _DEEPEST)
    return (source,), (source, segment), (source, segment, sure), (source, segment, sure, deep)


def _reach_keys(segment: Segment, reach: float) -> tuple[Key, Key]:
    sure = _sureness(reach)
    return (sure,), (segment, sure)


def _sureness(chance: float) -> int:
    return max(-_SUREST, min(_SUREST, round(_log_odds(chance))))


def _log_odds(chance: float) -> float:
    bounded = 0.001 if chance < 0.001 else 0.999 if chance > 0.999 else chance  # twice as fast as min and max
    return log(bounded / (1 - bounded))


def _log_ratio(part: float, whole: float) -> float:
    return log((part + 0.5) / (whole - part + 0.5))


def _squash(log_odds: float) -> float:
    return 1 / (1 + exp(-log_odds))
