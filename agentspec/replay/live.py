"""Answers recorded turns anew, plainly and speculatively, with one engine."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median, median_low
from typing import Any, Literal, Protocol

from agentspec import __version__
from agentspec.config import SamplingParams
from agentspec.figures import median_of, ratio
from agentspec.local.ask import Options
from agentspec.local.engine import Engine
from agentspec.local.result import Result
from agentspec.replay.asks import asked_of, caller_of, held_to, params_of, tool_choice
from agentspec.replay.budgets import BudgetSwitch
from agentspec.replay.each_turn import Done, each_turn, nobody
from agentspec.replay.own_ids import own_ids
from agentspec.replay.progress_file import ProgressFile
from agentspec.replay.report import Report
from agentspec.replay.turn_report import Fixed, TurnReport, taken_over
from agentspec.replay.turns import Recording, Turn
from agentspec.trace import Stats, by_source

Mode = Literal["plain", "adaptive"] | int
"""How a turn is answered; a number: with that fixed budget."""


_WARM_UP, _WARM_UP_TOKENS = [{"role": "user", "content": "one two three four one two three four one two"}], 16


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
        max_tokens: The most tokens of an answer, where its record tells no fewer.
        runs: How often each turn is answered in every mode.
        switch: Of the engine's controller; None: no fixed budgets.
        budgets: Fixed budgets, of the switch's, with which each turn is answered too.
        history: Whether what earlier turns' answers taught is kept. A turn's own answers are hidden from one another in
            any case: every mode and run has a caller's name of its own, and without history every answer has.
        resume: Where turns are kept as they are answered, and found again; None: nowhere. Not together with history,
            since what was not answered now taught nothing.
    """

    model: str = ""
    draft: str | None = None
    max_tokens: int
    runs: int = 1
    switch: BudgetSwitch | None = None
    budgets: Sequence[int] = ()
    history: bool = False
    resume: Path | None = None
    _prefix: str = field(default_factory=lambda: f"replay {secrets.token_hex(4)}")  # a store on disk outlives a run

    @property
    def modes(self) -> tuple[Mode, ...]:
        """In the order of the first turn; the next one begins with the second, and so on."""
        return ("plain", "adaptive", *self.budgets)

    def caller(self, mode: Mode | Literal["prefill"], run: int, place: int, recorded: str = "") -> str:
        """Whose answer it is: nothing that one caller's answers taught is used for another's."""
        whose = recorded if self.history and mode != "prefill" else place
        return f"{self._prefix} {mode} {run} {whose}"


def replay(
    engine: Engine,
    recording: Recording,
    way: Way,
    *,
    done: Done = nobody,
    choose: Callable[[Turn], Options] = tool_choice,
    watch: Watch | None = None,
) -> Report:
    """Answer every turn of a recording in each mode; the history stays the recorded one, whatever is answered.

    A turn that can't be answered is left out and listed. An interrupt ends it early, with the report of what is done.

    Args:
        engine: Answers as it was recorded, greedily where no parameters were.
        recording: From `read_traces`.
        way: Modes and sizes.
        done: Told after each turn.
        choose: What is asked of the model where a turn has tools.
        watch: Told what is being written.
    """
    setup = setup_of(way)
    report = Report(setup, skipped=list(recording.skipped))
    asker = _Asker(engine, way, watch)
    kept = None if way.resume is None else ProgressFile(way.resume, {**setup, "budgets": [*way.budgets]})

    def answer(place: int, turn: Turn) -> TurnReport:
        options = asked_of(turn, choose)
        found = kept.find(turn, options) if kept else None
        if found is None:
            found = asker.answer(turn, place, options)
            if kept:
                kept.append(found, turn, options)
        report.drafting_seconds += sum(record.propose_ms for record in found.rounds) / 1000
        return found

    each_turn(report, recording, answer, done=done, first=asker.warm_up)
    report.setup = {**setup, "device": {**setup["device"], **_peaks()}}
    return report


@dataclass(frozen=True, slots=True)
class _Ran:
    """An answer, and the energy that the machine used meanwhile, in joules; None: it doesn't tell."""

    result: Result
    joules: float | None


@dataclass(frozen=True, slots=True)
class _Asker:
    engine: Engine
    way: Way
    watch: Watch | None

    def warm_up(self) -> None:
        """Answer something in both ways that is not measured: the first forwards of a process are slower."""
        for speculate in (False, True):
            options: Options = {"speculate": speculate, "caller": self.way.caller("prefill", 0, -1)}
            self.engine.generate(_WARM_UP, SamplingParams(max_tokens=_WARM_UP_TOKENS), **options)

    def answer(self, turn: Turn, place: int, options: Options) -> TurnReport:
        """Answer a turn in every mode, after its prompt was prefilled, so that all start from the prefix cache."""
        # Of two tokens the second may be drafted, so that the draft model too reads the prompt now.
        drafted: Options = {**options, "speculate": True, "caller": self.way.caller("prefill", 0, place)}
        prefill = self.engine.generate(turn.messages, SamplingParams(max_tokens=2), **drafted)
        modes = self.way.modes
        spell = self.engine.spell
        own = bool(own_ids(turn, spell, partial(spell, control=False)))
        params = params_of(turn, self.way.max_tokens, own=own)
        found: dict[Mode, list[_Ran]] = {mode: [] for mode in modes}
        for run in range(self.way.runs):
            first = (place + run) % len(modes)
            for mode in (*modes[first:], *modes[:first]):
                named: Options = {**options, "caller": self.way.caller(mode, run, place, caller_of(turn))}
                found[mode].append(self._run(turn, mode, params, named))
        return _report(turn, options, prefill, found)

    def _run(self, turn: Turn, mode: Mode, params: SamplingParams, options: Options) -> _Ran:
        from agentspec.models.meter import read_energy

        if self.way.switch:
            self.way.switch.choose(mode if isinstance(mode, int) else None)
        speculate = mode != "plain"
        asked: Options = {**options, "speculate": speculate, "rounds": speculate}
        tell = self.watch or (lambda turn, speculate, text, tokens: None)
        tell(turn, speculate, "", 0)
        result, tokens, before = None, 0, read_energy()
        for event in self.engine.stream(turn.messages, params, **asked):
            tokens += len(event.tokens)
            tell(turn, speculate, event.text, tokens)
            result = event.result
        assert result is not None, "the last event of a stream holds the result"
        after = read_energy()
        return _Ran(result, after.since(before) if before and after else None)


def _report(turn: Turn, options: Options, prefill: Result, ran: dict[Mode, list[_Ran]]) -> TurnReport:
    found = {mode: [each.result for each in runs] for mode, runs in ran.items()}
    joules = {mode: median_of(each.joules for each in runs) for mode, runs in ran.items()}
    plain, ours = found["plain"], found["adaptive"]
    times = {mode: [_seconds(result.stats) for result in results] for mode, results in found.items()}
    middle = ours[times["adaptive"].index(median_low(times["adaptive"]))]
    answers = {(result.tokens, result.finish_reason) for results in found.values() for result in results}
    return TurnReport(
        **taken_over(turn),
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
            mode: _fixed(results[0].stats, times[mode], times["adaptive"])
            for mode, results in found.items()
            if isinstance(mode, int)
        },
        held=held_to(options),
        joules=joules["adaptive"],
        plain_joules=joules["plain"],
    )


def _fixed(stats: Stats, theirs: Sequence[float], ours: Sequence[float]) -> Fixed:
    accepted = by_source(stats.drafted, stats.accepted)
    return Fixed(stats.forwards, median(theirs), _relative(theirs, ours), accepted)


def setup_of(way: Way) -> dict[str, Any]:
    """How turns are answered, as reports tell it."""
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


def _peaks() -> dict[str, float | None]:
    from agentspec.models.meter import peak_memory_mib

    return {name: None if mib is None else round(mib) for name, mib in peak_memory_mib().items()}


def _seconds(stats: Stats) -> float:
    """Time of every round that `stats.forwards` counts, for an answer whose prompt was in the prefix cache."""
    return (stats.prefill_ms + stats.decode_ms) / 1000


def _relative(theirs: Sequence[float], ours: Sequence[float]) -> float | None:
    """The median of ratios of runs side by side."""
    return median_of(map(ratio, theirs, ours))
