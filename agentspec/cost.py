"""What a round's parts cost in time: a forward by its width, a proposer's draft by its source."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import exp, log

CPU_SHAPE = {1: 1.0, 2: 1.06, 4: 1.3, 8: 1.9, 16: 3.3, 32: 6.3}
"""First belief for packed weights on a CPU (measured over whole forwards of 0.5B and 1.5B models, two cores)."""

DEVICE_SHAPE = {1: 1.0, 8: 1.02, 16: 1.05, 32: 1.1, 64: 1.25, 128: 1.8}
"""First belief for a GPU, where a forward of few rows is bound by memory."""


ONE_WIDTH = {1: 1.0, 2: 1.0}
"""Where every forward runs in the same width, a node costs nothing."""

_NO_ROWS = {1: 0.0, 2: 0.0}


class CostTable:
    """Time of a forward by its width and rows, relative to that of one token, kept current by the forwards that run.

    Another program's burst slows all widths alike, so most of a surprise is taken for a change of the base, each is
    believed up to a bound only, and what was learned of a width fades towards what was measured when it isn't seen.

    Args:
        shape: Width to relative cost of one row, 1 for the width 1; at least two widths.
        rows: Rows to the relative cost that they add to what one row of as many tokens costs; 0 for one row.
        base_ms: Time of a forward of one token; 0: not known yet.
    """

    _PACE, _BASE_PACE, _BOUND, _FADE = 0.03, 0.35, 0.3, 0.9995
    _ROUNDING = 1e-6

    def __init__(
        self, shape: Mapping[int, float], *, rows: Mapping[int, float] = _NO_ROWS, base_ms: float = 0.0
    ) -> None:
        self._widths = sorted(shape)
        self._measured = [shape[width] for width in self._widths]
        self._learned = [0.0] * len(self._widths)
        self._costs = self._current()
        self._known: dict[tuple[int, int], float] = {}
        self._rows = sorted(rows)
        self._row_costs = [rows[number] for number in self._rows]
        self.base_ms = base_ms
        """Time of a forward of one token, as last believed; 0 before it is known."""

    def relative(self, width: int, rows: int = 1) -> float:
        """Cost of a forward in forwards of one token; straight lines between the known widths, and on after them."""
        known = self._known.get((width, rows))  # a draft is sized by many such costs, and they change once a forward
        if known is None:
            known = max(_line(self._widths, self._costs, width), 1.0)
            known += max(_line(self._rows, self._row_costs, rows), 0.0)
            self._known[width, rows] = known
        return known

    def observe(self, width: int, forward_ms: float, rows: int = 1) -> None:
        """Count a decoding forward."""
        if forward_ms <= 0:
            return
        believed = self.relative(width, rows)
        if self.base_ms == 0:
            self.base_ms = forward_ms / believed
        surprise = max(-self._BOUND, min(self._BOUND, log(forward_ms / (self.base_ms * believed))))
        if abs(surprise) < self._ROUNDING:
            surprise = 0.0
        self.base_ms *= exp(self._BASE_PACE * surprise)
        nearest = min(range(len(self._widths)), key=lambda index: abs(self._widths[index] - width))
        moved = self._learned[nearest] + self._PACE * surprise if nearest else 0.0
        self._learned = [learned * self._FADE for learned in self._learned]
        self._learned[nearest] = moved
        if (costs := self._current()) != self._costs:
            self._costs = costs
            self._known.clear()

    def _current(self) -> list[float]:
        """What was measured, shifted by what was learned; a wider forward never costs less."""
        pairs = zip(self._measured, self._learned, strict=True)
        return list(accumulate((cost * exp(learned) for cost, learned in pairs), max))


def _line(places: Sequence[int], values: Sequence[float], at: int) -> float:
    right = min(max(bisect_left(places, at), 1), len(places) - 1)
    left = right - 1
    slope = (values[right] - values[left]) / (places[right] - places[left])
    return values[left] + slope * (at - places[left])


class DraftTimes:
    """Seconds that a proposer's call takes, once it has read what stands before: its very first call is no measure.

    Later ones may have to read a prompt first, too: a longer time is believed slowly, a much shorter one at once.
    """

    _PACE, _BOUND = 0.2, 1.5

    def __init__(self) -> None:
        self._seconds: dict[str, float | None] = {}

    def seconds(self, proposer: str) -> float:
        """As last believed; 0 before it is known."""
        return self._seconds.get(proposer) or 0.0

    def observe(self, proposer: str, seconds: float) -> None:
        """Count a call."""
        if proposer not in self._seconds:
            self._seconds[proposer] = None
            return
        known = self._seconds[proposer] or seconds
        moved = known + self._PACE * (min(seconds, self._BOUND * known) - known)
        self._seconds[proposer] = seconds if seconds < known / 2 else moved
