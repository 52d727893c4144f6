"""Answers recorded turns anew, plainly and speculatively, with one engine."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median, median_low
from typing import Literal, Protocol

from agentspec import __version__
from agentspec.config import SamplingParams
from agentspec.errors import ConfigError, GrammarError, PromptError
from agentspec.figures import median_of, ratio
from agentspec.local.ask import Options
from agentspec.local.engine import Engine
from agentspec.local.result import Result
from agentspec.replay.asks import asked_of, held_to, reason, tool_choice
from agentspec.replay.budgets import BudgetSwitch
from agentspec.replay.report import Report
from agentspec.replay.turn_report import Fixed, TurnReport
from agentspec.replay.turns import Recording, Skipped, Turn
from agentspec.trace import Stats

Mode = Literal["plain", "adaptive"] | int
"""How a turn is answered; a number: with that fixed budget."""


class Watch(Protocol):
    """Told what is written while it is written: for a display."""

    def __call__(self, turn: Turn, speculate: bool, text: str, tokens: int) -> None:
        """More of an answer; its first call for an answer has no text yet and 0 tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How turns are answered.

    Attributes:
        model: What it is called, for the report.
        draft: The draft model, likewise; None: there is none.
        max_tokens: The most tokens of an answer.
        runs: How often each turn is answered in every mode.
        switch: Of the engine's controller; None: no fixed budgets.
        budgets: Fixed budgets, of the switch's, with which each turn is answered too.
        history: Whether what earlier turns' answers taught is kept. A turn's own answers are hidden from one another in
            any case: every mode and run has a caller's name of its own, and without history every answer has.
    """

    model: str = ""
    draft: str | None = None
    max_tokens: int
    runs: int = 1
    switch: BudgetSwitch | None = None
    budgets: Sequence[int] = ()
    history: bool = False
    _prefix: str = field(default_factory=lambda: f"replay {secrets.token_hex(4)}")  # a store on disk outlives a run

    @property
    def modes(self) -> tuple[Mode, ...]:
        """In the order of the first turn; the next one begins with the second, and so on."""
        return ("plain", "adaptive", *self.budgets)

    def caller(self, mode: Mode | Literal["prefill"], run: int, place: int) -> str:
        """Whose answer it is: nothing that one caller's answers taught is used for another's."""
        return f"{self._prefix} {mode} {run}" + ("" if self.history and mode != "prefill" else f" {place}")


def replay(
    engine: Engine,
    recording: Recording,
    way: Way,
    *,
    done: Callable[[TurnReport | Skipped], None] = lambda found: None,
    choose: Callable[[Turn], Options] = tool_choice,
    watch: Watch | None = None,
) -> Report:
    """Answer every turn of a recording in each mode; the history stays the recorded one, whatever is answered.

    A turn that can't be answered is left out and listed. An interrupt ends it early, with the report of what is done.

    Args:
        engine: Answers greedily.
        recording: From `read_traces`.
        way: Modes and sizes.
        done: Told after each turn.
        choose: What is asked of the model where a turn has tools.
        watch: Told what is being written.
    """
    report = Report(_setup(way), skipped=list(recording.skipped))
    asker = _Asker(engine, way, watch)
    try:
        for place, turn in enumerate(recording.turns):
            try:
                found = asker.answer(turn, place, asked_of(turn, choose))
                report.turns.append(found)
                done(found)
            except (PromptError, GrammarError, ConfigError) as error:
                report.skipped.append(Skipped(turn.file, turn.line, reason(error), turn.index))
                done(report.skipped[-1])
    except KeyboardInterrupt:
        report.interrupted = True
    return report


@dataclass(frozen=True, slots=True)
class _Asker:
    engine: Engine
    way: Way
    watch: Watch | None

    def answer(self, turn: Turn, place: int, options: Options) -> TurnReport:
        """Answer a turn in every mode, after its prompt was prefilled, so that all start from the prefix cache."""
        # Of two tokens the second may be drafted, so that the draft model too reads the prompt now.
        drafted: Options = {**options, "speculate": True, "caller": self.way.caller("prefill", 0, place)}
        prefill = self.engine.generate(turn.messages, SamplingParams(max_tokens=2), **drafted)
        modes = self.way.modes
        found: dict[Mode, list[Result]] = {mode: [] for mode in modes}
        for run in range(self.way.runs):
            first = (place + run) % len(modes)
            for mode in (*modes[first:], *modes[:first]):
                named: Options = {**options, "caller": self.way.caller(mode, run, place)}
                found[mode].append(self._run(turn, mode, named))
        return _report(turn, options, prefill, found)

    def _run(self, turn: Turn, mode: Mode, options: Options) -> Result:
        if self.way.switch:
            self.way.switch.choose(mode if isinstance(mode, int) else None)
        speculate = mode != "plain"
        asked: Options = {**options, "speculate": speculate, "rounds": speculate}
        tell = self.watch or (lambda turn, speculate, text, tokens: None)
        tell(turn, speculate, "", 0)
        result, tokens = None, 0
        params = SamplingParams(max_tokens=self.way.max_tokens)
        for event in self.engine.stream(turn.messages, params, **asked):
            tokens += len(event.tokens)
            tell(turn, speculate, event.text, tokens)
            result = event.result
        assert result is not None, "the last event of a stream holds the result"
        return result


def _report(turn: Turn, options: Options, prefill: Result, found: dict[Mode, list[Result]]) -> TurnReport:
    plain, ours = found["plain"], found["adaptive"]
    times = {mode: [_seconds(result.stats) for result in results] for mode, results in found.items()}
    middle = ours[times["adaptive"].index(median_low(times["adaptive"]))]
    answers = {(result.tokens, result.finish_reason) for results in found.values() for result in results}
    return TurnReport(
        trace_id=turn.trace_id,
        index=turn.index,
        digest=turn.digest,
        category=turn.category,
        repeat=turn.repeat,
        number=turn.number,
        prompt_tokens=middle.usage.prompt_tokens,
        tokens=len(middle.tokens),
        plain_forwards=plain[0].stats.forwards,
        plain_seconds=median(times["plain"]),
        seconds=median(times["adaptive"]),
        prefill_seconds=prefill.stats.prefill_ms / 1000,
        speedup=_relative(times["plain"], times["adaptive"]),
        identical=len(answers) == 1,
        finish_reason=middle.finish_reason,
        stats=middle.stats,
        rounds=middle.rounds,
        fixed={
            mode: Fixed(results[0].stats.forwards, median(times[mode]), _relative(times[mode], times["adaptive"]))
            for mode, results in found.items()
            if isinstance(mode, int)
        },
        approximate=turn.approximate,
        held=held_to(options),
    )


def _setup(way: Way) -> dict[str, object]:
    from agentspec.models.device import describe_device

    return {
        "mode": "live",
        "agentspec": __version__,
        "model": way.model,
        "draft": way.draft,
        "max_tokens": way.max_tokens,
        "runs": way.runs,
        "history": way.history,
        "budget": None,
        "cost": None,
        "device": describe_device(),
    }


def _seconds(stats: Stats) -> float:
    """Time of every round that `stats.forwards` counts, for an answer whose prompt was in the prefix cache."""
    return (stats.prefill_ms + stats.decode_ms) / 1000


def _relative(theirs: Sequence[float], ours: Sequence[float]) -> float | None:
    """The median of ratios of runs side by side."""
    return median_of(map(ratio, theirs, ours))
