"""Answers recorded turns anew, plainly and speculatively, with one engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from agentspec.config import SamplingParams
from agentspec.errors import ConfigError, GrammarError, PromptError
from agentspec.local.ask import Options
from agentspec.local.engine import Engine
from agentspec.local.result import Result
from agentspec.replay.report import Report, TurnReport, rounds_seconds
from agentspec.replay.traces import Recording, Skipped, Turn


class Watch(Protocol):
    """Told what is written while it is written: for a display."""

    def __call__(self, turn: Turn, speculate: bool, text: str, tokens: int) -> None:
        """More of an answer; its first call for an answer has no text yet and 0 tokens."""


def replay(
    engine: Engine,
    recording: Recording,
    *,
    max_tokens: int,
    done: Callable[[TurnReport | Skipped], None] = lambda found: None,
    choose: Callable[[Turn], Options] = lambda turn: {"tool_choice": "auto"},
    watch: Watch | None = None,
) -> Report:
    """Answer every turn of a recording twice. The history stays the recorded one, whatever the model answers.

    A turn that can't be answered is left out and listed. An interrupt ends it early, with the report of what is done.

    Args:
        engine: Answers greedily.
        recording: From `read_traces`.
        max_tokens: The most tokens of an answer.
        done: Told after each turn.
        choose: What is asked of the model where a turn has tools.
        watch: Told what is being written.
    """
    report = Report(skipped=list(recording.skipped))
    try:
        for place, turn in enumerate(recording.turns):
            options: Options = {"tools": turn.tools, **choose(turn)} if turn.tools else {}
            try:
                found = _answer_twice(engine, turn, options, _Way(max_tokens, place % 2 == 0, watch))
                report.turns.append(found)
                done(found)
            except (PromptError, GrammarError, ConfigError) as error:
                report.skipped.append(Skipped(turn.file, turn.line, _reason(error), turn.index))
                done(report.skipped[-1])
    except KeyboardInterrupt:
        report.interrupted = True
    return report


@dataclass(frozen=True, slots=True)
class _Way:
    max_tokens: int
    plain_first: bool
    watch: Watch | None


def _answer_twice(engine: Engine, turn: Turn, options: Options, way: _Way) -> TurnReport:
    """Answer a turn twice, after its prompt was prefilled, so that both answers start from the prefix cache."""
    # Of two tokens the second may be drafted, so that the draft model too reads the prompt now.
    drafted: Options = {**options, "speculate": True}
    prefill = engine.generate(turn.messages, SamplingParams(max_tokens=2), **drafted)
    answers: dict[bool, Result] = {}
    for speculate in (False, True) if way.plain_first else (True, False):
        answers[speculate] = _answer(engine, turn, {**options, "speculate": speculate}, way)
    plain, ours = answers[False], answers[True]
    return TurnReport(
        trace_id=turn.trace_id,
        index=turn.index,
        prompt_tokens=ours.usage.prompt_tokens,
        tokens=len(ours.tokens),
        plain_forwards=plain.stats.forwards,
        plain_seconds=rounds_seconds(plain.stats),
        prefill_seconds=prefill.stats.prefill_ms / 1000,
        identical=(plain.tokens, plain.finish_reason) == (ours.tokens, ours.finish_reason),
        finish_reason=ours.finish_reason,
        stats=ours.stats,
    )


def _answer(engine: Engine, turn: Turn, options: Options, way: _Way) -> Result:
    speculate, watch = bool(options["speculate"]), way.watch
    if watch:
        watch(turn, speculate, "", 0)
    result, tokens = None, 0
    for event in engine.stream(turn.messages, SamplingParams(max_tokens=way.max_tokens), **options):
        tokens += len(event.tokens)
        if watch:
            watch(turn, speculate, event.text, tokens)
        result = event.result
    assert result is not None, "the last event of a stream holds the result"
    return result


def _reason(error: Exception) -> str:
    """The message without the value, which our messages give behind ", not": it is a piece of the recorded text."""
    return str(error).partition(", not ")[0]
