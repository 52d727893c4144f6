from collections.abc import Callable

import pytest

from agentspec.acceptance import AcceptanceTable, ReachTable
from agentspec.config import EngineConfig
from agentspec.control import SpeculationController, best_size
from agentspec.cost import CostTable, DraftTimes
from agentspec.draft import Draft
from agentspec.errors import ConfigError
from agentspec.segments import Segment
from agentspec.trace import StepRecord

PROSE, CODE = Segment.PROSE, Segment.CODE


@pytest.mark.parametrize(
    ("gains", "cost", "rate", "expected"),
    [
        ([0.9, 0.8, 0.7], lambda n: 1.0, 1.0, 3),  # a free node always pays
        ([0.9, 0.8, 0.7], lambda n: 1.0 + n, 1.0, 0),  # a node that costs a round never does
        ([0.9, 0.1, 0.1], lambda n: 1.0 + 0.2 * n, 1.0, 1),  # a node of 0.1 for 0.2 of a round does not
        ([0.1, 0.9], lambda n: 1.0 + 0.3 * n, 1.0, 2),  # looks past a bad first node: 1.0 for 0.6
        ([0.5] * 4, lambda n: 1.0 if n < 4 else 2.0, 1.0, 3),  # up to where the next tile begins
        ([0.5] * 9, lambda n: (1.0, 2.0)[n > 0], 1.0, 9),  # a step that costs a round, then much for nothing
        ([0.9, 0.8, 0.7], lambda n: 1.0 + 0.25 * n, 3.0, 2),  # where rounds make three tokens, 0.7 for 0.75 is a loss
        ([], lambda n: 1.0, 1.0, 0),
    ],
)
def test_best_size(gains: list[float], cost: Callable[[int], float], rate: float, expected: int) -> None:
    assert best_size(gains, cost, rate) == expected


def test_acceptance_starts_at_the_sources_word_and_learns_from_a_dozen_nodes() -> None:
    table = AcceptanceTable()
    assert table.chance("suffix", PROSE, 0.8) == pytest.approx(0.8)
    for _ in range(12):
        table.observe(Draft.chain([1, 2], "suffix", 0.8), (), [PROSE] * 2)
    assert table.chance("suffix", PROSE, 0.8) < 0.1
    assert table.chance("suffix", PROSE, 0.8, depth=1) < 0.2  # never reached, but its source is known by now
    assert table.chance("suffix", PROSE, 0.8) < table.chance("suffix", PROSE, 0.99) < 0.9
    assert table.chance("suffix", PROSE, 0.8) < table.chance("suffix", CODE, 0.8) < 0.4
    assert table.chance("grammar", PROSE, 0.8) == pytest.approx(0.8)


def test_what_is_known_of_a_segment_does_not_depend_on_what_happened_elsewhere_since() -> None:
    table = AcceptanceTable()
    for _ in range(60):
        table.observe(Draft.chain([1], "suffix", 0.6), (0,), [CODE])
    sure = table.chance("suffix", CODE, 0.6)
    for _ in range(500):
        table.observe(Draft.chain([1], "suffix", 0.6), (), [PROSE])
    assert sure > 0.97
    assert table.chance("suffix", CODE, 0.6) > 0.97


def test_a_conversation_that_changes_is_noticed_within_some_dozen_nodes() -> None:
    table = AcceptanceTable()
    for _ in range(1000):
        table.observe(Draft.chain([1], "suffix", 0.8), (0,), [PROSE])
    for _ in range(60):
        table.observe(Draft.chain([1], "suffix", 0.8), (), [PROSE])
    assert table.chance("suffix", PROSE, 0.8) < 0.6


def test_depths_are_told_apart() -> None:
    table = AcceptanceTable()
    for _ in range(30):
        table.observe(Draft.chain([1, 2, 3], "suffix", 0.8), (0,), [PROSE] * 3)
    assert table.chance("suffix", PROSE, 0.8, depth=0) > 0.8
    assert table.chance("suffix", PROSE, 0.8, depth=1) < 0.3


def test_cost_is_straight_between_the_known_widths_and_goes_on_after_them() -> None:
    cost = CostTable({1: 1.0, 3: 1.2, 5: 2.0}, rows={1: 0.0, 2: 0.5, 4: 0.7})
    assert [cost.relative(width) for width in (1, 2, 4, 7)] == pytest.approx([1.0, 1.1, 1.6, 2.8])
    assert cost.relative(4, rows=3) == pytest.approx(1.6 + 0.6)


def test_cost_follows_what_forwards_took() -> None:
    cost = CostTable({1: 1.0, 4: 1.1, 8: 1.4})
    for _ in range(400):
        cost.observe(1, 10.0)
        cost.observe(4, 20.0)
        cost.observe(8, 30.0)
    assert cost.relative(4) == pytest.approx(2.0, rel=0.1)
    assert cost.relative(8) == pytest.approx(3.0, rel=0.1)


def test_another_programs_burst_changes_the_base_and_hardly_the_ratio() -> None:
    cost = CostTable({1: 1.0, 4: 1.1, 8: 1.4}, base_ms=10.0)
    for _ in range(100):  # only wide forwards, three times as slow
        cost.observe(8, 3 * 14.0)
    assert cost.base_ms == pytest.approx(30.0, rel=0.15)
    assert cost.relative(8) < 1.6  # not 4.2
    for _ in range(50):
        cost.observe(1, 10.0)
    assert cost.base_ms == pytest.approx(10.0, rel=0.05)
    assert cost.relative(8) < 1.6


def test_a_draft_that_had_to_read_a_prompt_first_is_no_news() -> None:
    times = DraftTimes()
    for seconds in (5.0, 0.010, 0.010, 5.0):
        times.observe("model", seconds)
    assert times.seconds("model") == pytest.approx(0.011)


def record(draft: Draft, path: tuple[int, ...], *, segment: Segment = PROSE) -> StepRecord:
    width, segments = 1 + len(draft), (segment,) * len(draft)
    return StepRecord(0, segment, draft, segments, path, (0,) * (1 + len(path)), 1, width, 0.0, 10.0, 10.0)


def controller() -> SpeculationController:
    return SpeculationController(max_draft=8, cost=CostTable({1: 1.0, 2: 1.3, 8: 3.0}, base_ms=100.0))


def test_a_source_that_is_always_wrong_is_switched_off_and_tried_ever_more_rarely() -> None:
    control, guess = controller(), Draft.chain([1, 2, 3], "suffix", 0.6)
    sizes = []
    for _ in range(2000):
        kept = control.trim(guess, [PROSE] * 3, rows=1)
        control.observe(record(kept, ()))
        sizes.append(len(kept))
    assert sizes[0] > 0
    tried = [place for place, size in enumerate(sizes) if size]
    assert max(tried[:4]) < 80
    assert len(tried) < 20
    assert tried[-1] > 900


def test_a_source_that_becomes_right_is_taken_up_again() -> None:
    control, guess = controller(), Draft.chain([1, 2, 3], "suffix", 0.6)
    for accepted in [False] * 300 + [True] * 300:
        kept = control.trim(guess, [PROSE] * 3, rows=1)
        control.observe(record(kept, tuple(range(len(kept))) if accepted else ()))
    assert len(control.trim(guess, [PROSE] * 3, rows=1)) == 3


def test_a_sure_draft_is_kept_whole_and_a_doubtful_tail_is_cut() -> None:
    control = SpeculationController(max_draft=8, cost=CostTable({1: 1.0, 8: 1.4}))
    sure = Draft.chain(range(7), "grammar", 0.97)
    assert control.trim(sure, [Segment.JSON_KEY] * 7, rows=1) == sure
    mixed = Draft.chain(range(7), "suffix", [0.9, 0.9, 0.01, 0.9, 0.9, 0.9, 0.9])
    assert control.trim(mixed, [Segment.JSON_KEY] * 7, rows=1).tokens == (0, 1)


def test_the_budget_falls_with_the_requests_that_share_a_forward() -> None:
    control = SpeculationController(max_draft=8, cost=CostTable({1: 1.0, 2: 1.06, 8: 1.2, 16: 3.0, 64: 13.0}))
    assert [control.budget(PROSE, rows) for rows in (1, 4, 8, 16)] == [8, 8, 0, 0]


def test_who_is_asked_follows_what_a_call_brings_and_takes() -> None:
    control, chain = controller(), Draft.chain([1, 2], "model", 0.7)
    assert control.asks("model", PROSE, 1.0, 1)  # nothing known yet
    for _ in range(2):
        control.observe_draft("suffix", 0.00001)
        control.observe_draft("model", 0.05)  # half a forward
    for _ in range(30):
        assert control.asks("model", CODE, 1.0, 1)
        control.observe(record(chain, (0, 1), segment=CODE))
    asked = 0
    for _ in range(500):
        if control.asks("model", PROSE, 1.0, 1):
            asked += 1
            control.observe(record(chain, ()))
    assert asked < 25
    assert control.asks("model", CODE, 1.0, 1)
    assert not control.asks("model", CODE, 0.1, 1)  # nor where the place is hardly ever reached
    assert control.asks("suffix", PROSE, 0.001, 1)  # a call that takes no time is never in question


def test_a_proposer_is_credited_with_all_its_sources() -> None:
    control, chain = controller(), Draft.chain([1], "prediction", 0.7)
    control.introduce("suffix", ("suffix", "prediction"))
    for _ in range(100):
        control.observe_draft("suffix", 0.05)
        assert control.asks("suffix", PROSE, 1.0, 1)
        control.observe(record(chain, (0,)))


@pytest.mark.parametrize("size", [-1, 17, True, 2.0])
def test_a_fixed_budget_is_a_number_of_nodes_up_to_the_longest_draft(size: object) -> None:
    with pytest.raises(ConfigError, match=r"whole number in 0\.\.16"):
        EngineConfig(budget=size)  # type: ignore[arg-type]


def test_a_reach_that_promises_too_much_is_believed_less() -> None:
    table, promised = ReachTable(), [0.5, 0.5]
    for _ in range(100):
        table.observe([PROSE, PROSE], promised, path=())
        table.observe([CODE, CODE], promised, path=(0, 1))
    assert table.chance(PROSE, 0.5) < 0.1  # what was promised as often as not never came
    assert table.chance(CODE, 0.5) > 0.9  # and elsewhere it always did
    assert table.chance(PROSE, 0.01) == pytest.approx(0.01)  # of poor promises nothing is known yet
