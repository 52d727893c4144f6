import pytest

from agentspec.control import AcceptanceTable, CostTable, SpeculationController, best_size
from agentspec.draft import Draft
from agentspec.segments import Segment
from agentspec.trace import StepRecord


@pytest.mark.parametrize(
    ("gains", "cost", "expected"),
    [
        ([0.9, 0.8, 0.7], lambda n: 1.0, 3),  # a free node always pays
        ([0.9, 0.8, 0.7], lambda n: 1.0 + n, 0),  # a node that costs a forward never does
        ([0.9, 0.1, 0.1], lambda n: 1.0 + 0.2 * n, 1),  # 1.9 / 1.2 beats 2.0 / 1.4
        ([0.1, 0.9], lambda n: 1.0 + 0.3 * n, 2),  # looks past a bad first node: 2.0 / 1.6 > 1
        ([], lambda n: 1.0, 0),
    ],
)
def test_best_size(gains: list[float], cost: object, expected: int) -> None:
    assert best_size(gains, cost) == expected  # type: ignore[arg-type]


def test_acceptance_starts_at_the_sources_word_and_learns() -> None:
    table = AcceptanceTable()
    assert table.chance("ngram", Segment.PROSE, 0.8) == pytest.approx(0.8)
    for _ in range(40):
        table.observe(Draft.chain([1, 2], "ngram", 0.8), (), [Segment.PROSE] * 2)
    # 40 trials of the first node, none of the second: it was never reached.
    assert table.chance("ngram", Segment.PROSE, 0.8) < 0.15
    assert table.chance("ngram", Segment.CODE, 0.8) == pytest.approx(0.8)


def test_what_was_seen_fades_so_that_a_source_is_tried_again() -> None:
    table = AcceptanceTable(half_life=10)
    for _ in range(40):
        table.observe(Draft.chain([1], "ngram", 0.8), (), [Segment.PROSE])
    low = table.chance("ngram", Segment.PROSE, 0.8)
    for _ in range(60):
        table.observe(Draft.chain([1], "grammar", 0.9), (0,), [Segment.PROSE])
    assert low < 0.3 < 0.7 < table.chance("ngram", Segment.PROSE, 0.8)


def test_cost_is_straight_between_the_known_widths_and_goes_on_after_them() -> None:
    cost = CostTable({1: 1.0, 3: 1.2, 5: 2.0})
    assert [cost.relative(width) for width in (1, 2, 4, 7)] == pytest.approx([1.0, 1.1, 1.6, 2.8])


def test_cost_follows_what_forwards_took() -> None:
    cost = CostTable({1: 1.0, 4: 1.1, 8: 1.4})
    for _ in range(400):
        cost.observe(1, 10.0)
        cost.observe(4, 20.0)
        cost.observe(8, 30.0)
    assert cost.relative(4) == pytest.approx(2.0, rel=0.05)
    assert cost.relative(8) == pytest.approx(3.0, rel=0.05)


def record(draft: Draft, path: tuple[int, ...]) -> StepRecord:
    tokens = tuple(draft.tokens[node] for node in path)
    return StepRecord(
        0, Segment.PROSE, draft, (Segment.PROSE,) * len(draft), path, (*tokens, 0), 1, 1 + len(draft), 0.0, 10.0, 10.0
    )


def test_a_source_that_is_always_wrong_is_switched_off_where_rows_cost() -> None:
    controller = SpeculationController(max_draft=8, cost=CostTable({1: 1.0, 2: 1.3, 8: 3.0}))
    guess = Draft.chain([1, 2, 3], "ngram", 0.6)
    assert len(controller.trim(guess, [Segment.PROSE] * len(guess), rows=1)) > 0
    for _ in range(60):
        kept = controller.trim(guess, [Segment.PROSE] * len(guess), rows=1)
        controller.observe(record(kept, ()))
    assert len(controller.trim(guess, [Segment.PROSE] * len(guess), rows=1)) == 0


def test_a_sure_draft_is_kept_whole_and_a_doubtful_tail_is_cut() -> None:
    controller = SpeculationController(max_draft=8, cost=CostTable({1: 1.0, 8: 1.4}))
    sure = Draft.chain(range(7), "grammar", 0.97)
    assert controller.trim(sure, [Segment.JSON_KEY] * len(sure), rows=1) == sure
    mixed = Draft.chain(range(7), "ngram", [0.9, 0.9, 0.01, 0.9, 0.9, 0.9, 0.9])
    assert controller.trim(mixed, [Segment.JSON_KEY] * len(mixed), rows=1).tokens == (0, 1)
