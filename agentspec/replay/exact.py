"""Runs a recording of our own again, round by round with the very drafts, and finds where it first comes out otherwise.

Source of the format: docs/recording.md. Every forward has the width that it had, so that a difference is one of the
model, its arithmetic or the engine, and not of what was drafted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from agentspec.config import EngineConfig, SamplingParams
from agentspec.control import FixedController
from agentspec.draft import EMPTY, Draft
from agentspec.engine.core import EngineCore
from agentspec.engine.request import Event, Order
from agentspec.errors import AgentSpecError, TraceError
from agentspec.local.ask import Ask, Asker, Options, Prompt
from agentspec.models.base import TargetModel
from agentspec.proposers.base import Context
from agentspec.replay.asks import reason
from agentspec.replay.files import read_records
from agentspec.replay.readers.base import Record, ids_at, object_at, objects, text_at
from agentspec.replay.readers.recording import NAME, VERSION
from agentspec.replay.recorded_rounds import Answer, Round, answers_at
from agentspec.replay.turns import Skipped
from agentspec.verify import Outcome

_LIKELIEST = 20
"""Log-probabilities that a round tells beside those of its tokens: the most that may be asked."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where an answer first comes out otherwise.

    Attributes:
        place: Index in the answer.
        round: Which of the recorded rounds wrote it, from 1.
        recorded: The token that was recorded; None: the answer was over.
        now: The token that is picked now; None: the answer is over.
        recorded_logprob: Of the recorded token, under the model's unprocessed logits; None: not among the likeliest.
        now_logprob: Of the token that is picked now, likewise.
    """

    place: int
    round: int
    recorded: int | None
    now: int | None
    recorded_logprob: float | None
    now_logprob: float | None


@dataclass(frozen=True, slots=True)
class Checked:
    """One recorded answer, run again.

    Attributes:
        trace_id: Of the request.
        answer: Which of its answers, from 0.
        rounds: That were recorded.
        tokens: Likewise.
        difference: None: everything came out the same.
    """

    trace_id: str
    answer: int
    rounds: int
    tokens: int
    difference: Difference | None


@dataclass(slots=True)
class ExactReport:
    """What came of a recording."""

    checked: list[Checked] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def first(self) -> Checked | None:
        """The first answer that came out otherwise."""
        return next((each for each in self.checked if each.difference), None)


class ExactEngine:
    """Runs recorded answers one after another.

    Args:
        target: The model.
        asker: Of the same model.
        config: Sizes.
    """

    def __init__(self, target: TargetModel, asker: Asker, config: EngineConfig) -> None:
        self._asker = asker
        self._vocab_size = target.vocab_size
        self._drafts = _Drafts()
        control = FixedController(config.max_draft)
        self._core = EngineCore(target, self._drafts, controller=control, config=config)

    def check(self, row: Mapping[str, Any]) -> list[Checked]:
        """Run the answers of one line of a recording. Call it in the model thread.

        Raises:
            TraceError: The line can't be run again.
            AgentSpecError: It asks what this model can't do.
        """
        orders, answers = self._orders(row), answers_at(row, self._vocab_size)
        if len(answers) != len(orders):
            raise TraceError(f"{len(orders)} answers were asked for, and {len(answers)} are recorded")
        found = []
        for number, (order, answer) in enumerate(zip(orders, answers, strict=True)):
            difference = self._difference(order, answer)
            sizes = len(answer.rounds), len(answer.tokens)
            found.append(Checked(str(row.get("trace_id") or ""), number, *sizes, difference))
        return found

    def _orders(self, row: Mapping[str, Any]) -> list[Order]:
        if row.get("version") != VERSION or row.get("redacted"):
            what = "it is redacted" if row.get("redacted") else f"it is not of version {VERSION}"
            raise TraceError(f"the line can't be run again: {what}")
        prompt = ids_at(object_at(row, "prompt"), "tokens")
        if not prompt or max(prompt) >= self._vocab_size:
            raise TraceError("the prompt's tokens are not this model's: name the model that was recorded")
        asked: Prompt = _messages(row) or text_at(object_at(row, "prompt"), "text") or prompt
        params = SamplingParams.of({**object_at(row, "params"), "logprobs": _LIKELIEST})
        ask = Ask(asked, params, _options(row))
        return [replace(order, prompt=list(prompt)) for order in self._asker.read(ask)[0]]

    def _difference(self, order: Order, answer: Answer) -> Difference | None:
        events: list[Event] = []
        recorded = answer.tokens
        self._drafts.follow(len(order.prompt), answer.rounds)
        self._core.add(replace(order, listener=events.append))
        while not self._core.idle:
            self._core.step()
        if events and events[-1].error:
            raise events[-1].error
        now = [token for event in events for token in event.tokens]
        place = next((at for at, pair in enumerate(zip(recorded, now, strict=False)) if pair[0] != pair[1]), None)
        if place is None and len(now) == len(recorded):
            return None
        place = min(len(now), len(recorded)) if place is None else place
        told = [each for event in events for each in event.logprobs]
        likely = told[place].top | {told[place].token: told[place].logprob} if place < len(told) else {}
        before, after = (each[place] if place < len(each) else None for each in (recorded, now))
        logprobs = (None if token is None else likely.get(token) for token in (before, after))
        return Difference(place, _round(answer.rounds, place), before, after, *logprobs)


def check_recordings(
    engine: ExactEngine, files: Sequence[str], *, done: Callable[[], object] = lambda: None
) -> ExactReport:
    """Run every answer of some recordings again; what can't be is left out and listed.

    Args:
        engine: For the model that was recorded.
        files: That `agentspec serve --record` wrote.
        done: Told after each line.

    Raises:
        TraceError: A file can't be read, or holds no recording.
    """
    from agentspec.engine.thread import MODEL_THREAD

    report = ExactReport()
    for record in _records(files):
        if isinstance(record, Skipped):
            report.skipped.append(record)
        else:
            try:
                report.checked += MODEL_THREAD.call(partial(engine.check, record.value))
            except AgentSpecError as error:
                report.skipped.append(record.skipped(reason(error)))
        done()
    if not report.checked:
        first = f"; the first: {report.skipped[0].reason}" if report.skipped else ""
        raise TraceError(f"no answer of {len(files)} file(s) can be run again{first}")
    return report


def _records(files: Sequence[str]) -> Iterator[Record | Skipped]:
    for name in files:
        for record in read_records(name, is_text=lambda head: False):
            ours = isinstance(record, Record) and isinstance(record.value, dict) and record.value.get("format") == NAME
            if isinstance(record, Skipped) or ours:
                yield record
            else:
                yield record.skipped("not a line that agentspec serve --record wrote")


def _options(row: Mapping[str, Any]) -> Options:
    held = object_at(object_at(row, "response_format"), "json_schema").get("schema")
    asked = dict(object_at(row, "options"))
    asked |= {"tools": row["tools"]} if row.get("tools") else {}
    asked |= {"json_schema": held} if held is not None else {}
    options: Options = asked  # type: ignore[assignment]  # checked where they are read
    return options


def _messages(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Those that were answered; none where the prompt was no conversation."""
    messages, targets = objects(row, "messages"), row.get("targets")
    if not messages:
        return []
    target = targets[0] if isinstance(targets, list) and targets else None
    if type(target) is not int or not 0 < target < len(messages):
        raise TraceError("targets is no list with the index of the message that answers others")
    return messages[:target]


def _round(rounds: Sequence[Round], place: int) -> int:
    written = 0
    for number, each in enumerate(rounds, 1):
        written += len(each.tokens)
        if place < written:
            return number
    return len(rounds)


class _Drafts:
    """Guesses what was guessed when the answer was recorded, at the same place."""

    name, sources = "recording", ("recording",)

    def __init__(self) -> None:
        self._known: dict[int, Draft] = {}

    def follow(self, prompt_length: int, rounds: Sequence[Round]) -> None:
        """Guess these rounds' drafts from now on."""
        self._known, written = {}, prompt_length
        for each in rounds:
            self._known[written] = each.draft
            written += len(each.tokens)

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        """The draft at each place; none where no round began."""
        return [self._known.get(len(context.tokens), EMPTY) for context in contexts]

    def learn(self, context: Context, draft: Draft, outcome: Outcome) -> None:
        """Nothing to learn."""

    def finish(self, request_id: int, answer: Sequence[int]) -> None:
        """Nothing to forget."""
