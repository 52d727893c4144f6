"""Figures as reports show them: rounded, and None where there is nothing to say."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median


def ratio(above: float, below: float) -> float | None:
    """Rounded to three places; None where there is nothing to divide by."""
    return round(above / below, 3) if below else None


def median_of(values: Iterable[float | None]) -> float | None:
    """The median of those that are known, rounded to three places; None if there are none."""
    known = [value for value in values if value is not None]
    return round(median(known), 3) if known else None


def shown(figure: float | None, digits: int = 2) -> str:
    """For a reader; a dash where there is nothing to say."""
    return "-" if figure is None else f"{figure:.{digits}f}"
