"""A report's charts, as shapes for inline SVG: places and sizes are worked out here, colours are the page's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentspec.explain.account import TARGET
from agentspec.replay.turn_report import TurnReport
from agentspec.trace import StepRecord

WIDTH = 900
"""Of every chart, in the units of its view box."""

_BAR_HEIGHT, _LINE_HEIGHT = 150, 90


@dataclass(frozen=True, slots=True)
class Shape:
    """A rectangle.

    Attributes:
        x: Of its left edge.
        y: Of its upper edge.
        width: At least what can be seen.
        height: Likewise.
        kind: A CSS class.
        tip: What is shown of it where it is pointed at.
    """

    x: float
    y: float
    width: float
    height: float
    kind: str
    tip: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Shapes, and lines across with what they stand for.

    Attributes:
        height: Of the view box.
        shapes: In the order in which they are drawn.
        marks: Labels by their height.
    """

    height: float
    shapes: tuple[Shape, ...]
    marks: tuple[tuple[float, str], ...] = ()


def origin(turns: Sequence[TurnReport], names: Mapping[str, str]) -> Chart:
    """Who wrote the tokens: one bar, the target's own part last."""
    total = sum(turn.tokens for turn in turns)
    accepted: Counter[str] = Counter()
    for turn in turns:
        accepted.update(turn.stats.accepted)
    counts = [*accepted.most_common(), (TARGET, total - accepted.total())]
    shapes, x = [], 0.0
    for source, count in counts:
        width = WIDTH * count / total
        if count:
            shapes.append(Shape(x, 0, width, 34, names[source], f"{source}: {count:,} tokens, {count / total:.0%}"))
        x += width
    return Chart(34, tuple(shapes))


def by_turn(turns: Sequence[TurnReport]) -> Chart:
    """Tokens a forward of each turn, in their order; turns that came out slower than plain are marked."""
    values = [turn.tokens / turn.forwards for turn in turns]
    top = max(*values, 2.0)
    step = WIDTH / len(turns)
    shapes = []
    for place, (turn, value) in enumerate(zip(turns, values, strict=True)):
        height = _BAR_HEIGHT * value / top
        faster = "" if turn.speedup is None else f", {turn.speedup:.2f}x"
        tip = f"{turn.trace_id}, turn {turn.number}: {value:.2f} tokens a forward{faster}"
        kind = "lost" if turn.speedup is not None and turn.speedup < 1 else "won"
        gap = min(step * 0.15, 3)
        shapes.append(Shape(place * step, _BAR_HEIGHT - height, step - gap, height, kind, tip))
    marks = tuple((_BAR_HEIGHT * (1 - mark / top), f"{mark:g}") for mark in _marks(top))
    return Chart(_BAR_HEIGHT, tuple(shapes), marks)


def time_line(turn: TurnReport, names: Mapping[str, str], ms: Sequence[float]) -> Chart:
    """A turn's rounds, one after the other: as wide as they took, as high as they brought tokens.

    Args:
        turn: With its rounds, at least one.
        names: CSS classes of the sources.
        ms: What each round took, or any other measure of it.
    """
    total, top = sum(ms) or 1.0, max(len(record.tokens) for record in turn.rounds)
    shapes, x = [], 0.0
    for number, (record, took) in enumerate(zip(turn.rounds, ms, strict=True), 1):
        width = WIDTH * took / total
        y = float(_LINE_HEIGHT)
        for source, count in _written(record):
            height = _LINE_HEIGHT * count / top
            y -= height
            rejected = len(record.draft) - len(record.path)
            tip = f"round {number}: {count} of {source}, {rejected} rejected, {took:.1f} ms"
            shapes.append(Shape(x, y, max(width - 0.6, 0.4), height, names[source], tip))
        x += width
    return Chart(_LINE_HEIGHT, tuple(shapes), ((0.0, f"{top}"),))


def _written(record: StepRecord) -> list[tuple[str, int]]:
    """Tokens of a round by who guessed them; the target's own first, so that it is drawn lowest."""
    accepted = Counter(record.draft.sources[node] for node in record.path)
    own = len(record.tokens) - len(record.path)
    return [(source, count) for source, count in ((TARGET, own), *accepted.items()) if count]


def _marks(top: float) -> list[float]:
    """Round values for a scale: 1, where nothing is won, and some above."""
    step = next((step for step in (1, 2, 5, 10, 20) if top / step <= 4), 50)
    return [1.0, *(float(value) for value in range(step, int(top) + 1, step) if value > 1)]
