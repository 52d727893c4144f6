"""Sums over turns: tokens, forwards and seconds, and the ratios that are made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agentspec.figures import median_of, ratio
from agentspec.replay.turn_report import TurnReport, rounded


def summed(turns: Sequence[TurnReport]) -> dict[str, Any]:
    """Counts and seconds added up, and ratios.

    `speedup` is the ratio of the sums, in which long answers weigh more; `median_speedup` is the median of the turns'
    own ratios. Where turns were answered with fixed budgets too, `budgets` says which of them was the fastest over
    these turns, and `adaptive_to_best` how many times as fast as that the adaptive one was, likewise both ways.
    """
    tokens, forwards = sum(turn.tokens for turn in turns), sum(turn.forwards for turn in turns)
    seconds, plain = whole(turn.seconds for turn in turns), whole(turn.plain_seconds for turn in turns)
    compared = [turn.identical for turn in turns if turn.identical is not None]
    return {
        "turns": len(turns),
        "tokens": tokens,
        "forwards": forwards,
        "plain_forwards": sum(turn.plain_forwards for turn in turns),
        "tokens_per_forward": ratio(tokens, forwards),
        "seconds": rounded(seconds),
        "plain_seconds": rounded(plain),
        "speedup": ratio(plain or 0, seconds or 0),
        "median_speedup": median_of(turn.speedup for turn in turns),
        "joules": rounded(whole(turn.joules for turn in turns)),
        "plain_joules": rounded(whole(turn.plain_joules for turn in turns)),
        "identical": all(compared) if len(compared) == len(turns) else None,
        "budgets": _budgets(turns, tokens, seconds or 0),
    }


def whole(values: Iterable[float | None]) -> float | None:
    """The sum; None where a part is not known."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None


def _budgets(turns: Sequence[TurnReport], tokens: int, seconds: float) -> dict[str, Any] | None:
    """What the fixed budgets came to, over turns that all have the same ones; None without any."""
    sizes = list(turns[0].fixed) if turns else []
    if not sizes:
        return None
    took = {size: sum(turn.fixed[size].seconds for turn in turns) for size in sizes}
    forwards = {size: sum(turn.fixed[size].forwards for turn in turns) for size in sizes}
    best = min(sizes, key=lambda size: took[size])
    return {
        "fixed": {
            str(size): {
                "forwards": forwards[size],
                "tokens_per_forward": ratio(tokens, forwards[size]),
                "seconds": round(took[size], 4),
            }
            for size in sizes
        },
        "best": best,
        "adaptive_to_best": ratio(took[best], seconds),
        "median_adaptive_to_best": median_of(turn.fixed[best].relative for turn in turns),
    }
