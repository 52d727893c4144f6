"""A replay on an engine that answers with its prompt's last line."""

from typing import Any

import pytest
from engine_doubles import echo_engine

from agentspec.errors import EngineError
from agentspec.local.engine import Engine
from agentspec.replay.live import replay
from agentspec.replay.report import Report, headline
from agentspec.replay.traces import Recording, Skipped, Turn

CAT = "the cat and the cat and the cat"


def turn(*texts: str, index: int = 1, tools: tuple[Any, ...] = ()) -> Turn:
    return Turn("t", index, tuple({"role": "user", "content": text} for text in texts), tools, "f", 1, called=False)


def recording(*turns: Turn) -> Recording:
    return Recording(turns, ())


def test_both_answers_start_from_the_prefilled_prompt_and_agree() -> None:
    with echo_engine() as engine:
        report = replay(engine, recording(turn(CAT)), max_tokens=64)

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
        replay(engine, recording(turn(CAT), turn("a", index=3)), max_tokens=4, watch=watch)
    assert asked == [(1, False), (1, True), (3, True), (3, False)]


def test_a_turn_that_cant_be_asked_is_listed_and_holds_none_of_the_text() -> None:
    long, broken = turn("x" * 200), turn("a", index=3, tools=({"type": "secret"},))
    told: list[object] = []

    with echo_engine(context_length=100) as engine:
        report = replay(engine, recording(long, broken, turn(CAT, index=5)), max_tokens=8, done=told.append)
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
        replay(engine, recording(turn(CAT)), max_tokens=4)


def test_a_difference_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Engine.stream

    def lie(self: Engine, prompt: Any, params: Any, **options: Any) -> Any:
        return stream(self, [{"role": "user", "content": "other"}] if options["speculate"] else prompt, params)

    monkeypatch.setattr(Engine, "stream", lie)
    with echo_engine() as engine:
        report = replay(engine, recording(turn(CAT)), max_tokens=8)
    assert (report.identical, report.total["identical"]) == (False, False)
    assert headline(report).endswith(", NOT identical")


def test_a_report_of_nothing_divides_by_nothing() -> None:
    report = Report(skipped=[Skipped("f", 1, "why")])

    assert headline(report) == "nothing was answered: 1 skipped"
    assert report.total["speedup"] is None
