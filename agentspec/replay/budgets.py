"""Fixed budgets beside the adaptive one, on one engine: what choosing each draft's size is worth."""

from __future__ import annotations

from collections.abc import Sequence

from agentspec.control import FixedController, SpeculationController
from agentspec.draft import Draft
from agentspec.segments import Segment
from agentspec.trace import StepRecord


class BudgetSwitch(SpeculationController):
    """The adaptive controller, and in its place, while an answer asks for it, one with a fixed budget.

    A fixed budget asks every source and verifies all that they guess; the adaptive controller learns nothing from it.
    Switch only between requests.

    Args:
        adaptive: Decides unless another was chosen.
        sizes: Budgets that can be chosen.
    """

    def __init__(self, adaptive: SpeculationController, sizes: Sequence[int]) -> None:
        self._all: dict[int | None, SpeculationController] = {None: adaptive}
        self._all.update({size: FixedController(size) for size in sizes})
        self._now = adaptive

    def choose(self, size: int | None) -> None:
        """Let a fixed budget decide from now on; None: the adaptive controller."""
        self._now = self._all[size]

    def budget(self, segment: Segment, rows: int) -> int:
        """The chosen controller's."""
        return self._now.budget(segment, rows)

    def rate(self, segment: Segment) -> float:
        """The chosen controller's."""
        return self._now.rate(segment)

    def chance(self, source: str, segment: Segment, score: float, depth: int = 0) -> float:
        """The chosen controller's."""
        return self._now.chance(source, segment, score, depth)

    def introduce(self, proposer: str, sources: Sequence[str]) -> None:
        """Tell all of them."""
        for controller in self._all.values():
            controller.introduce(proposer, sources)

    def asks(self, proposer: str, segment: Segment, reach: float, rows: int) -> bool:
        """The chosen controller's."""
        return self._now.asks(proposer, segment, reach, rows)

    def trim(self, draft: Draft, segments: Sequence[Segment], rows: int) -> Draft:
        """The chosen controller's."""
        return self._now.trim(draft, segments, rows)

    def observe(self, record: StepRecord) -> None:
        """Tell the chosen controller."""
        self._now.observe(record)

    def observe_forward(self, width: int, forward_ms: float, rows: int = 1) -> None:
        """Tell the chosen controller."""
        self._now.observe_forward(width, forward_ms, rows)

    def observe_draft(self, proposer: str, seconds: float) -> None:
        """Tell the chosen controller."""
        self._now.observe_draft(proposer, seconds)
