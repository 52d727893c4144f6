"""The controller in a world of known odds: drafts come true by chance, forwards take their time as told."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul

import pytest

from agentspec.control import FixedController, SpeculationController
from agentspec.cost import CostTable
from agentspec.draft import EMPTY, Draft
from agentspec.segments import Segment
from agentspec.trace import StepRecord

BIG_CPU = {1: 1.0, 2: 1.06, 4: 1.42, 8: 2.25, 16: 4.0}
SMALL_CPU = {1: 1.0, 2: 1.07, 4: 1.14, 8: 1.64, 16: 2.8}
GPU = {1: 1.0, 2: 1.0, 4: 1.01, 8: 1.02, 16: 1.05, 32: 1.1}
BASE_MS = 80.0
LONGEST = 16
PROSE, FRAME = Segment.PROSE, Segment.JSON_KEY


@dataclass(frozen=True)
class Source:
    """Guesses a chain at a place, each node right with a chance that only the world knows."""

    name: str
    odds: Callable[[Segment, int], float]  # by segment and depth
    score: float = 0.6  # what it believes itself
    knows: float = 1.0  # how often it has a guess at all
    call_ms: float = 0.0
    longest: int = LONGEST


@dataclass
class World:
    shape: dict[int, float]
    sources: Sequence[Source]
    segment_at: Callable[[int], Segment] = lambda place: PROSE
    rows: int = 1
    length: int = 2500
    clock: random.Random = field(default_factory=lambda: random.Random(7))


def rate(world: World, control: SpeculationController, seed: int = 1) -> float:
    """Tokens of a row per plain forward's time over a run; rows draft alike, and are lucky each alone."""
    chance, true = random.Random(seed), CostTable(world.shape)
    place, written, spent = 0, 0.0, 0.0
    while place < world.length:
        draft, segments, propose_ms = drafted(world, control, place, chance)
        draft = control.trim(draft, segments, world.rows)
        paths = [accepted(world, draft, segments, chance) for _ in range(world.rows)]
        width = world.rows * (1 + len(draft))
        forward_ms = BASE_MS * true.relative(width)
        spent += (forward_ms + propose_ms) / BASE_MS
        heard_ms = forward_ms * disturbance(world.clock)
        for path in paths:
            control.observe(StepRecord(
                0, world.segment_at(place), draft, segments[: len(draft)], path, (0,) * (1 + len(path)),
                world.rows, width, propose_ms, heard_ms, heard_ms + propose_ms,
            ))  # fmt: skip
        control.observe_forward(width, heard_ms, world.rows)
        written += 1 + sum(map(len, paths)) / world.rows
        place = int(written)
    return written / spent


def drafted(world: World, control: SpeculationController, place: int, chance: random.Random):
    """The first source that is asked and knows something, as far as the budget goes."""
    budget = control.budget(world.segment_at(place), world.rows)
    propose_ms = 0.0
    for source in world.sources:
        knows = chance.random() < source.knows
        if budget and control.asks(source.name, world.segment_at(place), 1.0, world.rows):
            propose_ms += source.call_ms
            control.observe_draft(source.name, source.call_ms / 1000)
            if knows:
                size = min(budget, source.longest)
                segments = tuple(world.segment_at(place + depth) for depth in range(size))
                return Draft.chain(range(size), source.name, source.score), segments, propose_ms
    return EMPTY, (), propose_ms


def accepted(world: World, draft: Draft, segments: Sequence[Segment], chance: random.Random) -> tuple[int, ...]:
    luck = [chance.random() for _ in range(LONGEST)]  # as many draws in every round, whatever is drafted
    odds = {source.name: source.odds for source in world.sources}
    size = 0
    while size < len(draft) and luck[size] < odds[draft.sources[size]](segments[size], size):
        size += 1
    return tuple(range(size))


def disturbance(clock: random.Random) -> float:
    return clock.lognormvariate(0, 0.05) * (4.0 if clock.random() < 0.02 else 1.0)


def adaptive(world: World) -> SpeculationController:
    return SpeculationController(max_draft=LONGEST, cost=CostTable(world.shape, base_ms=BASE_MS))


def fixed_rate(world: World, size: int) -> float:
    """What a fixed budget comes to in a world of one segment, exactly."""
    cost = CostTable(world.shape).relative
    tokens, time, unknown = 1.0, 0.0, 1.0
    for source in world.sources if size else ():
        nodes, known = min(size, source.longest), unknown * source.knows
        odds = [source.odds(PROSE, depth) for depth in range(nodes)]
        tokens += known * sum(accumulate(odds, mul))
        time += unknown * source.call_ms / BASE_MS + known * cost(world.rows * (1 + nodes))
        unknown -= known
    return tokens / (time + unknown * cost(world.rows))


def always(odds: float) -> Callable[[Segment, int], float]:
    return lambda segment, depth: odds


def fades(start: float, factor: float) -> Callable[[Segment, int], float]:
    return lambda segment, depth: start * factor**depth


def until(depth: int) -> Callable[[Segment, int], float]:
    return lambda segment, at: 0.97 if at < depth else 0.02


STATIONARY = {
    f"{curve}: {name}": World(shape, sources, **more)
    for curve, shape in (("1.5B", BIG_CPU), ("0.5B", SMALL_CPU), ("GPU", GPU))
    for name, sources, more in (
        ("nothing is ever accepted", [Source("suffix", always(0.0), score=0.97)], {}),
        ("everything is accepted", [Source("suffix", always(1.0), score=0.3)], {}),
        ("fair chains", [Source("suffix", always(0.7))], {}),
        ("poor chains", [Source("suffix", always(0.3))], {}),
        ("chances that fade", [Source("suffix", fades(0.9, 0.85), score=0.8)], {}),
        ("long runs, then misses", [Source("suffix", until(5), score=0.8)], {}),
        ("a guess now and then", [Source("suffix", always(0.9), knows=0.3)], {}),
        ("a costly model, fair", [Source("model", always(0.75), call_ms=30.0, longest=4)], {}),
        ("a costly model, mediocre", [Source("model", always(0.45), call_ms=60.0, longest=4)], {}),
        ("a model behind look-up", [
            Source("suffix", always(0.85), knows=0.4), Source("model", always(0.4), call_ms=50.0, longest=4)
        ], {}),
        ("eight requests, fair", [Source("suffix", always(0.7))], {"rows": 8}),
        ("eight requests, sure", [Source("grammar", always(0.97), score=0.97)], {"rows": 8}),
    )
}  # fmt: skip


@pytest.mark.parametrize("name", STATIONARY)
def test_within_five_percent_of_the_best_fixed_budget(name: str) -> None:
    world = STATIONARY[name]
    assert rate(world, adaptive(world)) >= 0.95 * max(fixed_rate(world, size) for size in range(LONGEST + 1))


def frames_and_prose(segment: Segment, depth: int) -> float:
    return 0.98 if segment is FRAME else 0.15


@pytest.mark.parametrize("shape", [BIG_CPU, SMALL_CPU, GPU], ids=["1.5B", "0.5B", "GPU"])
def test_ahead_of_every_fixed_budget_where_segments_alternate(shape: dict[int, float]) -> None:
    world = alternating(shape)
    fixed = {size: rate(world, FixedController(size)) for size in (1, 2, 3, 4, 8, 12, LONGEST)}
    assert rate(world, adaptive(world)) > max(fixed.values())


def alternating(shape: dict[int, float]) -> World:
    source = Source("suffix", frames_and_prose)
    return World(shape, [source], segment_at=lambda place: FRAME if place % 80 < 40 else PROSE, length=6000)


@pytest.mark.parametrize("size", [0, 5, LONGEST])
def test_the_simulation_agrees_with_the_formula(size: int) -> None:
    world = STATIONARY["1.5B: a model behind look-up"]
    assert rate(world, FixedController(size)) == pytest.approx(fixed_rate(world, size), rel=0.02)
