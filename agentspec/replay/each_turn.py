"""The one loop over the turns of a recording, whatever is made of them."""

from __future__ import annotations

from collections.abc import Callable

from agentspec.errors import ConfigError, GrammarError, PromptError, TraceError
from agentspec.replay.asks import reason
from agentspec.replay.report import Report
from agentspec.replay.turn_report import TurnReport
from agentspec.replay.turns import Recording, Skipped, Turn

Done = Callable[[TurnReport | Skipped], None]
"""Told after each turn."""


def nobody(found: TurnReport | Skipped) -> None:
    """Where nobody is told."""


def each_turn(
    report: Report,
    recording: Recording,
    answer: Callable[[int, Turn], TurnReport],
    *,
    done: Done,
    first: Callable[[], None] = lambda: None,
) -> None:
    """Report every turn; one that can't be answered is left out and listed. An interrupt ends it early.

    Args:
        report: Takes what is found.
        recording: From `read_traces`.
        answer: What became of a turn, from its place and itself.
        done: Told after each turn.
        first: Done before the first one.
    """
    try:
        first()
        for place, turn in enumerate(recording.turns):
            try:
                report.turns.append(answer(place, turn))
                done(report.turns[-1])
            except (PromptError, GrammarError, ConfigError, TraceError) as error:
                report.skipped.append(Skipped(turn.file, turn.line, reason(error), turn.index))
                done(report.skipped[-1])
    except KeyboardInterrupt:
        report.interrupted = True
