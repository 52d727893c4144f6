"""How sure a ratio of times is: intervals by bootstrap over the turns that were measured."""

from __future__ import annotations

from collections.abc import Sequence

_RESAMPLES = 2000
_LEVEL = 0.95


def speedup_interval(plain: Sequence[float], ours: Sequence[float]) -> tuple[float, float] | None:
    """Where the ratio of the sums lies in 95 % of resampled sets of turns; None for fewer than two turns.

    The percentile bootstrap over pairs, with a fixed seed, so that a report is the same each time.

    Args:
        plain: Seconds of each turn.
        ours: Likewise, of the same turns in the same order, above 0.
    """
    if len(plain) < 2 or min(ours) <= 0:
        return None
    import numpy as np

    above, below = np.asarray(plain), np.asarray(ours)
    drawn = np.random.default_rng(0).integers(len(plain), size=(_RESAMPLES, len(plain)))
    ratios = above[drawn].sum(axis=1) / below[drawn].sum(axis=1)
    low, high = np.quantile(ratios, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return round(float(low), 3), round(float(high), 3)
