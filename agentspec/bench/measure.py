"""Runs every task in every mode, taking turns, and keeps what each run took."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar

from agentspec.bench.tasks import Task
from agentspec.config import EngineConfig, SamplingParams
from agentspec.engine.thread import MODEL_THREAD
from agentspec.grammar.tools import read_tools
from agentspec.local.ask import Asker, Options
from agentspec.local.engine import Engine
from agentspec.local.load import Placement, load_models
from agentspec.models.reference import Mode, Reference
from agentspec.proposers.registry import NAMES
from agentspec.trace import Stats

_T = TypeVar("_T")

PLAIN, OURS, DRAFTED = "plain", "agentspec", "agentspec with draft"
OTHERS: dict[Mode, str] = {
    "plain": "transformers",
    "lookup": "transformers lookup",
    "assistant": "transformers assistant",
}
"""transformers' modes and what reports call them."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One task in one mode, once.

    Attributes:
        mode: `PLAIN`, `OURS` or one of `OTHERS`' names.
        run: From 0.
        tokens: The answer.
        first_tokens: How many tokens the first round gave; they are left out of `rate`.
        first_seconds: Until then: the prompt's prefill.
        seconds: Until the end.
        stats: Of our own modes.
    """

    task: Task
    mode: str
    run: int
    tokens: tuple[int, ...]
    first_tokens: int
    first_seconds: float
    seconds: float
    stats: Stats | None = None

    @property
    def rate(self) -> float | None:
        """Tokens per second after the first round; None if that was all."""
        left, took = len(self.tokens) - self.first_tokens, self.seconds - self.first_seconds
        return left / took if left > 0 and took > 0 else None

    @property
    def end_to_end(self) -> float:
        """Tokens per second, prefill included."""
        return len(self.tokens) / self.seconds


class Contest:
    """One model behind our engine and, if asked for, behind transformers.

    Args:
        engine: Ours without a draft model; made with a prefix cache that keeps one sequence only, see `load`.
        asker: Reads prompts for the same model.
        drafted: The same target with a draft model.
        reference: The same weights on transformers.
    """

    def __init__(
        self, engine: Engine, asker: Asker, *, drafted: Engine | None = None, reference: Reference | None = None
    ) -> None:
        self._engines = {PLAIN: engine, OURS: engine} | ({DRAFTED: drafted} if drafted else {})
        self._asker = asker
        self._reference = reference

    @classmethod
    def load(cls, model: str, draft: str | None, *, against: bool) -> Contest:
        """Load the models: ours first, then with `against` the same ones for transformers, in memory of their own.

        Raises:
            ModelError: A model can't be read or run.
        """
        config = EngineConfig(prefix_cache_tokens=0)
        loaded = load_models(model, draft, placement=Placement(), config=config)
        engine = Engine(loaded.core([name for name in NAMES if name != "model"], config), loaded.asker)
        drafted = Engine(loaded.core(None, config), loaded.asker) if draft else None
        reference = MODEL_THREAD.call(lambda: Reference.load(model, draft)) if against else None
        return cls(engine, loaded.asker, drafted=drafted, reference=reference)

    @property
    def modes(self) -> list[str]:
        """Every mode of this contest, in the order of reports."""
        others = self._reference.modes if self._reference else ()
        return [*self._engines, *(OTHERS[mode] for mode in others)]

    def run(self, tasks: Sequence[Task], *, runs: int, max_tokens: int, done: Callable[[], None]) -> list[Measurement]:
        """Every task in every mode, task by task, the modes in rotated order; once without counting to warm up.

        transformers comes after ours, because it is to write as many tokens where a grammar holds ours.
        An interrupt ends it early, with what is complete.
        """
        found: list[Measurement] = []
        try:
            self._task(tasks[0], run=-1, turn=0, max_tokens=8)
            for run in range(runs):
                for place, task in enumerate(tasks):
                    found += self._task(task, run=run, turn=run + place, max_tokens=max_tokens)
                    done()
        except KeyboardInterrupt:
            pass
        return found

    def close(self) -> None:
        """Free the engines' memory."""
        for engine in self._engines.values():
            engine.close()

    def _task(self, task: Task, *, run: int, turn: int, max_tokens: int) -> list[Measurement]:
        found = [self._ours(task, run, mode, max_tokens) for mode in _rotated(list(self._engines), turn)]
        if self._reference is None:
            return found
        length = len(found[0].tokens) if task.held else max_tokens
        others = _rotated(self._reference.modes, turn)
        return found + [self._other(self._reference, task, run, mode, length) for mode in others]

    def _ours(self, task: Task, run: int, mode: str, max_tokens: int) -> Measurement:
        # A short request of another prompt, so that none starts from the prefix that the run before left.
        engine = self._engines[mode]
        engine.generate([0], SamplingParams(max_tokens=1))
        options: Options = {"speculate": mode != PLAIN, "caller": f"{mode} {run}"}  # no run hears of another
        if task.tools:
            options = {**options, "tools": task.tools, "tool_choice": "required"}
        if task.json_schema is not None:
            options = {**options, "json_schema": dict(task.json_schema)}
        start, first, result = perf_counter(), (0.0, 0), None
        for event in engine.stream(task.messages, SamplingParams(max_tokens=max_tokens), **options):
            if not first[1]:
                first = (perf_counter() - start, len(event.tokens))
            result = event.result
        assert result is not None, "the last event of a stream holds the result"
        seconds = perf_counter() - start
        return Measurement(task, mode, run, result.tokens, first[1], first[0], seconds, result.stats)

    def _other(self, reference: Reference, task: Task, run: int, mode: Mode, length: int) -> Measurement:
        prompt = self._asker.tokens(task.messages, read_tools(task.tools), "required" if task.tools else "auto")
        found = MODEL_THREAD.call(lambda: reference.run(prompt, mode=mode, max_tokens=length, exactly=task.held))
        return Measurement(
            task, OTHERS[mode], run, found.tokens, found.first_tokens, found.first_seconds, found.seconds
        )


def _rotated(items: Sequence[_T], turns: int) -> list[_T]:
    cut = turns % len(items)
    return [*items[cut:], *items[:cut]]
