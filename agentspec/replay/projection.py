"""Replays turns without a model, and says what they would have taken where a forward costs what a price says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agentspec import __version__
from agentspec.config import EngineConfig
from agentspec.figures import ratio
from agentspec.local.ask import Options
from agentspec.replay.asks import asked_of, caller_of, tool_choice
from agentspec.replay.costs import BELIEVED, Price
from agentspec.replay.each_turn import Done, each_turn, nobody
from agentspec.replay.intervals import speedup_interval
from agentspec.replay.oracle import Decoded, OracleEngine
from agentspec.replay.report import Report
from agentspec.replay.scribe import Scribe, Transcribed
from agentspec.replay.turn_report import TurnReport, taken_over
from agentspec.replay.turns import Recording, Turn
from agentspec.trace import StepRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """How recorded answers are decoded again.

    Attributes:
        tokenizer: What it is called.
        price: Of a forward; `BELIEVED`: times are not told.
        budget: A fixed one; None: the adaptive controller's.
        max_tokens: The most tokens of an answer: longer ones are cut; None: all that was recorded.
        history: Whether what earlier turns' answers to the same caller taught is kept.
        choose: What was asked of the model where a turn has tools.
    """

    tokenizer: str
    price: Price = BELIEVED
    budget: int | None = None
    max_tokens: int | None = None
    history: bool = False
    choose: Callable[[Turn], Options] = field(default=tool_choice)


def project(
    scribe: Scribe,
    recording: Recording,
    way: Projection,
    *,
    done: Done = nobody,
) -> Report:
    """Decode the recorded answer of every turn; one that can't be is left out and listed.

    An interrupt ends it early, with the report of what is done.

    Args:
        scribe: Puts turns into tokens.
        recording: From `read_traces`.
        way: How.
        done: Told after each turn.
    """
    report = Report(_setup(way), skipped=list(recording.skipped))
    engine = OracleEngine(scribe.vocabulary, way.price.table(), budget=way.budget, config=EngineConfig())

    def answer(place: int, turn: Turn) -> TurnReport:
        caller = caller_of(turn) if way.history else str(place)
        options = asked_of(turn, way.choose)
        written = scribe.transcribe(turn, options, caller=caller, max_tokens=way.max_tokens)
        decoded = engine.decode(written.recorded)
        report.drafting_seconds += decoded.drafting_seconds
        return _turn_report(turn, written, decoded, way.price)

    each_turn(report, recording, answer, done=done)
    report.projected = _interval(report, way.price)
    return report


def _setup(way: Projection) -> dict[str, object]:
    return {
        "mode": "oracle",
        "agentspec": __version__,
        "model": way.tokenizer,
        "draft": None,
        "max_tokens": way.max_tokens,
        "runs": 1,
        "history": way.history,
        "budget": way.budget,
        "cost": way.price.wire if way.price.base_ms else None,
        "device": {},
    }


def _turn_report(turn: Turn, written: Transcribed, decoded: Decoded, price: Price) -> TurnReport:
    tokens = len(written.recorded.answer)
    plain = tokens * price.base_ms / 1000 if price.base_ms else None
    seconds = price.seconds(widths(decoded.rounds), price.shape) if price.base_ms else None
    return TurnReport(
        **taken_over(turn),
        prompt_tokens=len(written.recorded.order.prompt),
        tokens=tokens,
        plain_forwards=tokens,
        plain_seconds=plain,
        seconds=seconds,
        prefill_seconds=None,
        speedup=ratio(plain, seconds) if plain and seconds else None,
        identical=None,
        finish_reason="tool_calls" if turn.called and decoded.finish_reason == "stop" else decoded.finish_reason,
        stats=decoded.stats,
        rounds=decoded.rounds,
        held=written.held,
        loosened=written.loosened,
    )


def widths(rounds: Sequence[StepRecord]) -> Mapping[int, int]:
    """Forwards by the tokens in them, as if each prompt had been read before."""
    return Counter(1 + len(record.draft) for record in rounds)


def _interval(report: Report, price: Price) -> tuple[float, float] | None:
    """Where the speed-up may lie, as far as the turns and the price are known.

    From the lowest end that the turns make likely, at the highest cost and with the time that drafting took here, to
    their highest end at the lowest cost.
    """
    if not price.base_ms or len(report.turns) < 2:
        return None
    plain = [turn.tokens * price.base_ms / 1000 for turn in report.turns]
    share = report.drafting_seconds / sum(turn.forwards for turn in report.turns)
    forwards = [widths(turn.rounds) for turn in report.turns]
    slow = [price.seconds(each, price.high) + share * sum(each.values()) for each in forwards]
    fast = [price.seconds(each, price.low) for each in forwards]
    low, high = speedup_interval(plain, slow), speedup_interval(plain, fast)
    return (low[0], high[1]) if low and high else None
