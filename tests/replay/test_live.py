"""A replay on an engine that answers with its prompt's last line."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from engine_doubles import Guesser, ScriptedEngine, byte_asker, echo, echo_engine
from toy_vocabulary import EOS, TV

from agentspec.config import EngineConfig
from agentspec.control import SpeculationController
from agentspec.draft import EMPTY, Draft
from agentspec.engine.core import EngineCore
from agentspec.errors import EngineError
from agentspec.local.engine import Engine
from agentspec.proposers.base import Context, Off, Proposer
from agentspec.replay.asks import tool_choice
from agentspec.replay.budgets import BudgetSwitch
from agentspec.replay.categories import Category
from agentspec.replay.live import Way, replay, setup_of
from agentspec.replay.report import Report, disturbed, headline
from agentspec.replay.turns import Recording, Skipped, Turn
from agentspec.testing import FixedController, ScriptedTarget

CAT = "the cat and the cat and the cat"


def turn(*texts: str, index: int = 1, tools: tuple[Any, ...] = ()) -> Turn:
    return Turn("t", index, tuple({"role": "user", "content": text} for text in texts), tools, "f", 1, called=False)


def recording(*turns: Turn) -> Recording:
    return Recording(turns, ())


def test_both_answers_start_from_the_prefilled_prompt_and_agree() -> None:
    with echo_engine() as engine:
        report = replay(engine, recording(turn(CAT)), Way(max_tokens=64))

    (found,) = report.turns
    assert (found.tokens, found.forwards, found.plain_forwards) == (32, 7, 32)
    assert (found.identical, found.finish_reason, found.stats.prefill_tokens) == (True, "stop", 1)
    assert found.wire["by_source"] == {"guesser": {"drafted": 26, "accepted": 26, "rate": 1.0}}
    assert found.wire["by_segment"]["prose"] == {
        "tokens": 32,
        "forwards": 7,
        "drafted": 26,
        "accepted": 26,
        "tokens_per_forward": 4.571,
    }


def test_the_order_of_the_two_answers_alternates() -> None:
    asked: list[tuple[int, bool]] = []

    def watch(turn: Turn, speculate: bool, text: str, tokens: int) -> None:
        if not tokens:
            asked.append((turn.index, speculate))

    with echo_engine() as engine:
        replay(engine, recording(turn(CAT), turn("a", index=3)), Way(max_tokens=4), watch=watch)
    assert asked == [(1, False), (1, True), (3, True), (3, False)]


def test_a_turn_that_cant_be_asked_is_listed_and_holds_none_of_the_text() -> None:
    long, broken = turn("x" * 200), turn("a", index=3, tools=({"type": "secret"},))
    told: list[object] = []

    with echo_engine(context_length=100) as engine:
        report = replay(engine, recording(long, broken, turn(CAT, index=5)), Way(max_tokens=8), done=told.append)
    assert [(each.index, each.reason) for each in report.skipped] == [
        (
            1,
            "the prompt has 217 tokens and the model's context holds 100: shorten it by at least 118",
        ),
        (3, 'tools[0]: a tool must be {"type": "function", "function": {"name": ...}}'),
    ]
    assert [found.index for found in report.turns] == [5]
    assert told == [*report.skipped, *report.turns]


def test_an_engine_that_fails_is_no_skipped_turn() -> None:
    engine = echo_engine()
    engine.close()

    with pytest.raises(EngineError):
        replay(engine, recording(turn(CAT)), Way(max_tokens=4))


def test_a_difference_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Engine.stream

    def lie(self: Engine, prompt: Any, params: Any, **options: Any) -> Any:
        return stream(self, [{"role": "user", "content": "other"}] if options["speculate"] else prompt, params)

    monkeypatch.setattr(Engine, "stream", lie)
    with echo_engine() as engine:
        report = replay(engine, recording(turn(CAT)), Way(max_tokens=8))
    assert (report.identical, report.total["identical"]) == (False, False)
    assert headline(report.wire).endswith(", NOT identical")


def test_times_that_the_saved_forwards_cannot_explain_are_no_figure() -> None:
    assert disturbed(SimpleNamespace(speedup=66.2, plain_forwards=205, forwards=23))
    assert not disturbed(SimpleNamespace(speedup=8.9, plain_forwards=205, forwards=23))


def test_a_report_of_nothing_divides_by_nothing() -> None:
    report = Report(setup_of(Way(max_tokens=8)), skipped=[Skipped("f", 1, "why")])

    assert headline(report.wire) == "nothing was answered: 1 skipped"
    assert report.total["speedup"] is None


class Remembers(Off):
    """Guesses the latest answer of the same caller, and nothing else: what a store of answers comes to."""

    name, sources = "store", ("store",)

    def __init__(self) -> None:
        self._callers: dict[int, str] = {}
        self._answers: dict[str, tuple[int, ...]] = {}

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        return [self._guess(context) for context in contexts]

    def _guess(self, context: Context) -> Draft:
        self._callers[context.request_id] = context.caller
        written = len(context.tokens) - context.prompt_length
        rest = self._answers.get(context.caller, ())[written:]
        return Draft.chain(rest[: context.budget], self.name, 0.9) if rest else EMPTY

    def finish(self, request_id: int, answer: Sequence[int]) -> None:
        caller = self._callers.pop(request_id, "")
        self._answers[caller] = tuple(answer)


def engine_with(proposer: Proposer, control: SpeculationController | None = None) -> Engine:
    target = ScriptedTarget(echo, vocab_size=len(TV), eos=frozenset({EOS}))
    core = EngineCore(target, proposer, controller=control or FixedController(8), config=EngineConfig())
    return Engine(core, byte_asker())


@pytest.mark.parametrize(("history", "second"), [(False, (32, 32)), (True, (4, 7))])
def test_no_answer_of_a_turn_can_copy_another_one_of_it(history: bool, second: tuple[int, int]) -> None:
    with engine_with(Remembers(), switch := BudgetSwitch(FixedController(8), [4])) as engine:
        way = Way(max_tokens=64, runs=2, switch=switch, budgets=[4], history=history)
        report = replay(engine, recording(turn(CAT), turn(CAT, index=3)), way)

    # Seven answers of the same 32 tokens to each turn: what any of them taught would give the others away. With history
    # the second turn may know the first one's answer, in rounds of 8 + 1 or 4 + 1 tokens, and still not its own.
    forwards = [(found.forwards, found.fixed[4].forwards) for found in report.turns]
    assert forwards == [(32, 32), second]
    assert report.identical


@pytest.mark.parametrize("history", [False, True])
def test_the_real_store_copies_no_answer_of_the_same_turn(history: bool) -> None:
    once = "QWXYZ7190BDFGHJKLMNP"  # nothing in it, or in the prompt, comes twice

    with ScriptedEngine(once) as engine:
        way = Way(max_tokens=64, runs=2, history=history)
        first, second = replay(engine, recording(turn("?"), turn("?", index=3)), way).turns
    assert (first.tokens, first.forwards) == (21, 21)
    assert (second.forwards < 10) == history


def test_fixed_budgets_run_beside_the_adaptive_one_and_leave_it_alone() -> None:
    adaptive = FixedController(2)
    with engine_with(Guesser(name="guesser"), switch := BudgetSwitch(adaptive, [1, 4])) as engine:
        report = replay(engine, recording(turn(CAT)), Way(max_tokens=64, switch=switch, budgets=[1, 4]))

    # 32 tokens, end token included: 1 + budget in each round.
    (found,) = report.turns
    assert {size: fixed.forwards for size, fixed in found.fixed.items()} == {1: 16, 4: 7}
    assert (found.forwards, found.plain_forwards) == (11, 32)
    assert report.total["budgets"]["fixed"]["4"]["tokens_per_forward"] == 4.571


def test_the_switch_passes_everything_on() -> None:
    verbs = {name for name in vars(SpeculationController) if not name.startswith("_")}

    assert verbs <= vars(BudgetSwitch).keys()


def test_what_is_asked_follows_the_recording_unless_told() -> None:
    called = Turn("t", 1, (), (), "f", 1, called=True)

    assert tool_choice(called) == {"tool_choice": "required"}
    assert tool_choice(called, "auto") == {"tool_choice": "auto"}
    assert tool_choice(turn("a")) == {"tool_choice": "auto"}
    assert tool_choice(turn("a"), "required") == {"tool_choice": "required"}


def test_a_response_format_holds_the_answer() -> None:
    held = Turn("t", 1, ({"role": "user", "content": "a"},), (), "f", 1, False, Category.JSON, {"const": [1]})

    with echo_engine() as engine:
        report = replay(engine, recording(held), Way(max_tokens=8))
    assert report.by_category()["json"]["tokens"] == 4  # [1] and the end
