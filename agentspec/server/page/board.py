"""What the page tells: a watcher of the desk that remembers what is running and the last answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from time import monotonic, time
from typing import Any

from agentspec.explain.account import TARGET, Spell, explain
from agentspec.explain.styles import STYLES, style_of
from agentspec.explain.terminal import visible
from agentspec.local.result import Result, StreamEvent
from agentspec.replay.turn_report import segments_wire
from agentspec.server.desk import Running
from agentspec.server.page.speed import Pace, PlainRounds
from agentspec.server.problems import Problem
from agentspec.trace import Stats, StepRecord, by_source

_ANSWERS = 20
_TOKENS = 2_048
_TEXT = 1_500
_PREVIEW = 160
_BRANCH = 80


@dataclass(slots=True)
class _Written:
    """An answer that is being written: its last characters."""

    text: str = ""
    tokens: int = 0


@dataclass(slots=True)
class _Live:
    """A request that runs."""

    running: Running
    answers: dict[int, _Written] = field(default_factory=dict)

    @property
    def wire(self) -> dict[str, Any]:
        """As the page reads it."""
        return {
            "id": self.running.id,
            "api": self.running.asked.api,
            "seconds": round(monotonic() - self.running.started, 2),
            "prompt_tokens": len(self.running.prompt),
            "tokens": sum(answer.tokens for answer in self.answers.values()),
            "texts": [self.answers[index].text for index in sorted(self.answers)],
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that is over, its rounds cut after so many tokens.

    Attributes:
        wire: Its figures, as the page reads them.
        pace: Of all its rounds.
        rounds: Its first ones.
    """

    wire: dict[str, Any]
    pace: Pace
    rounds: tuple[StepRecord, ...]

    def pieces(self, spell: Spell) -> dict[str, Any]:
        """Token by token: who guessed it, and what was guessed wrongly in its stead."""
        account = explain(self.rounds, spell)
        rejected = [branch.wire | {"text": visible(branch.text, _BRANCH)} for branch in account.rejected]
        return {
            "pieces": [piece.wire for piece in account.pieces],
            "rejected": rejected,
            "left_out": self.wire["tokens"] - len(account.pieces),
        }


class Board:
    """A watcher: what runs, the last answers, and sums over all. Bounded, however much is answered."""

    def __init__(self) -> None:
        self._live: dict[str, _Live] = {}
        self._answers: deque[Answer] = deque(maxlen=_ANSWERS)
        self._plain = PlainRounds()
        self._stats = Stats()
        self._requests = {"answered": 0, "unfinished": 0}

    def started(self, running: Running) -> None:
        """It was let in."""
        self._live[running.id] = _Live(running)

    def wrote(self, running: Running, event: StreamEvent) -> None:
        """More of an answer."""
        answer = self._live[running.id].answers.setdefault(event.index, _Written())
        answer.text = (answer.text + event.text)[-_TEXT:]
        answer.tokens += len(event.tokens)
        if event.result is not None:
            self._keep(running, event.index, event.result)

    def ended(self, running: Running, problem: Problem | None) -> None:
        """It is over."""
        del self._live[running.id]
        self._requests["unfinished" if problem else "answered"] += 1

    def answer(self, name: str) -> Answer | None:
        """One of the last answers."""
        return next((answer for answer in self._answers if answer.wire["id"] == name), None)

    @property
    def wire(self) -> dict[str, Any]:
        """All but the answers' tokens, the latest answer first."""
        return {
            "running": [live.wire for live in self._live.values()],
            "answers": [
                {**answer.wire, "speedup": _rounded(self._plain.speedup([answer.pace]))}
                for answer in reversed(self._answers)
            ],
            "totals": {
                "requests": self._requests,
                "tokens": self._stats.tokens,
                "forwards": self._stats.forwards,
                "speedup": _rounded(self._plain.speedup(answer.pace for answer in self._answers)),
                "plain_token_ms": _rounded(self._plain.token_ms()),
            },
            "sources": self._sources(),
            "segments": segments_wire(self._stats),
        }

    def _keep(self, running: Running, index: int, result: Result) -> None:
        self._plain.observe(result.rounds)
        self._stats.merge(result.stats)
        wire = {
            "id": f"{running.id}-{index}",
            "api": running.asked.api,
            "ended": time(),
            "seconds": round(monotonic() - running.started, 2),
            "preview": " ".join(result.text[: 2 * _PREVIEW].split())[:_PREVIEW],
            "finish_reason": result.finish_reason,
            "prompt_tokens": result.usage.prompt_tokens,
            "cached_tokens": result.usage.cached_tokens,
            "tokens": result.stats.tokens,
            "forwards": result.stats.forwards,
        }
        self._answers.append(Answer(wire, Pace.of(result.rounds), tuple(_first(result.rounds, _TOKENS))))

    def _sources(self) -> list[dict[str, Any]]:
        """Who drafted anything, by what was accepted; then the model itself."""
        counts = by_source(self._stats.drafted, self._stats.accepted)
        drafted = sorted(
            (name for name in counts if counts[name]["drafted"]), key=lambda name: -counts[name]["accepted"]
        )
        return [
            {"name": name, "style": style_name(name), "meaning": style_of(name).meaning, **counts.get(name, {})}
            for name in (*drafted, TARGET)
        ]


def style_name(source: str) -> str:
    """The class that the page's style sheet has for a source."""
    return f"source-{source}" if source in STYLES else "source-other"


def _first(rounds: Sequence[StepRecord], tokens: int) -> Iterable[StepRecord]:
    for record in rounds:
        tokens -= len(record.tokens)
        if tokens < 0:
            return
        yield record


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
