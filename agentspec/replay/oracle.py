"""Replays recorded answers without a model: the recording takes the target's place, everything else is the engine's.

The core, its proposers and its controller are those that decode. A forward costs what a table says that it would cost,
on a clock that stands still otherwise, so a report is the same each time; what drafting costs is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, cast

from agentspec.config import EngineConfig
from agentspec.control import FixedController, SpeculationController
from agentspec.cost import CostTable
from agentspec.draft import ROOT, Draft
from agentspec.engine.core import EngineCore
from agentspec.engine.request import Event, FinishReason, Order
from agentspec.errors import TraceError
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.models.base import Output, Row
from agentspec.models.token_slot import TokenSlot
from agentspec.places import Place
from agentspec.proposers.answers import AnswerStore
from agentspec.proposers.base import Context, Proposer
from agentspec.proposers.registry import build_proposer
from agentspec.trace import Stats, StepRecord
from agentspec.verify import Outcome

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Recorded:
    """An answer that was recorded, and what was asked.

    Attributes:
        order: The ask, as the engine takes it. Where the answer does not end itself, by an end token, stop text or
            grammar, its `max_tokens` must be the answer's length.
        answer: What the target picked, at least one token.
    """

    order: Order
    answer: tuple[int, ...]


class Oracle:
    """A target that writes what was recorded; also the picker of its picks, and the clock that its forwards move.

    Args:
        vocab_size: Of the tokenizer.
        eos: Ids that end an answer.
        cost: Of a forward; its `base_ms` must be known.
    """

    context_length = 2**31

    def __init__(self, *, vocab_size: int, eos: frozenset[int], cost: CostTable) -> None:
        self.vocab_size = vocab_size
        self.eos = eos
        self._cost = cost
        self._script: Sequence[int] = ()
        self._prompt_length = 0
        self._seconds = 0.0
        self._end = min(eos, default=0)

    def write(self, recorded: Recorded) -> None:
        """Write this answer from now on."""
        self._script, self._prompt_length = recorded.answer, len(recorded.order.prompt)

    def open(self) -> TokenSlot:
        """An empty slot."""
        return TokenSlot()

    def forward(self, rows: Sequence[Row]) -> Output:
        """The picks in the place of logits: a row's own, then one behind each node of its draft."""
        self._seconds += self._cost.base_ms / 1000 * self._cost.relative(sum(row.width for row in rows), len(rows))
        return Output(cast("Tensor", [pick for row in rows for pick in self._picks(row)]))

    def clock(self) -> float:
        """Seconds that the forwards took so far."""
        return self._seconds

    def pick(self, logits: Tensor, places: Sequence[Place]) -> Sequence[int]:
        """The picks that `forward` gave."""
        return cast("Sequence[int]", logits)

    def logprobs(self, logits: Tensor, token: int, top: int) -> tuple[float, dict[int, float]]:
        """Not recorded."""
        raise TraceError("log-probabilities were not recorded: leave out logprobs")

    def _picks(self, row: Row) -> list[int]:
        start = len(row.slot.tokens) + len(row.pending) - self._prompt_length
        depth = {ROOT: 0}  # of the nodes on the script
        picks = [self._at(start)]
        for node, (token, parent) in enumerate(zip(row.draft.tokens, row.draft.parents, strict=True)):
            if parent in depth and token == self._at(start + depth[parent]):
                depth[node] = depth[parent] + 1
            picks.append(self._at(start + depth[node]) if node in depth else self._end)
        return picks

    def _at(self, place: int) -> int:
        return self._script[place] if 0 <= place < len(self._script) else self._end


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a recorded answer would have taken.

    Attributes:
        stats: Its sums; times are what the cost says.
        rounds: What each forward brought.
        plain_ms: Without drafts, from its second token on.
        drafting_seconds: What drafting took here.
        finish_reason: Why it ended.
    """

    stats: Stats
    rounds: tuple[StepRecord, ...]
    plain_ms: float
    drafting_seconds: float
    finish_reason: FinishReason


class OracleEngine:
    """Decodes recorded answers one after another, with what each one teaches.

    Args:
        vocabulary: Of the tokenizer that they are written with.
        cost: Of a forward.
        proposers: See `build_proposer`; a draft model can't be among them.
        budget: A fixed one; None: the adaptive controller's.
        config: Sizes.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        cost: CostTable,
        *,
        proposers: Sequence[str] | None = None,
        budget: int | None = None,
        config: EngineConfig | None = None,
    ) -> None:
        config = config or EngineConfig()
        self._cost = cost
        self._oracle = Oracle(vocab_size=len(vocabulary.tokens), eos=vocabulary.eos, cost=cost)
        control: SpeculationController = _Timeless(max_draft=config.max_draft, cost=cost)
        if budget is not None:
            control = FixedController(budget)
        answers = AnswerStore(shared=False)
        proposer = build_proposer(proposers, vocabulary=vocabulary, draft_model=None, judge=control, answers=answers)
        self._timed = _Timed(proposer)
        self._core = EngineCore(
            self._oracle,
            self._timed,
            controller=control,
            config=config,
            picker=self._oracle,
            clock=self._oracle.clock,
        )

    def decode(self, recorded: Recorded) -> Decoded:
        """Write a recorded answer again.

        Raises:
            TraceError: It can't be: a token may not stand where it does under the order's guide, or it ends elsewhere.
        """
        events: list[Event] = []
        before = self._timed.seconds
        self._oracle.write(recorded)
        self._core.add(replace(recorded.order, listener=events.append))
        while not self._core.idle:
            self._core.step()
        written = tuple(token for event in events for token in event.tokens)
        end = next(event for event in events if event.finish_reason)
        if written != recorded.answer:
            reason = end.error or f"{len(written)} tokens of {len(recorded.answer)}"
            raise TraceError(f"the recorded answer can't be written again: {reason}")
        assert end.stats is not None, "an answer's last event has its sums"
        rounds = tuple(event.record for event in events if event.record)
        plain_ms = (len(recorded.answer) - 1) * self._cost.base_ms
        assert end.finish_reason is not None
        return Decoded(end.stats, rounds, plain_ms, self._timed.seconds - before, end.finish_reason)


class _Timeless(SpeculationController):
    """The controller, for which drafting takes no time: it would else decide by what else this machine does."""

    def observe_draft(self, proposer: str, seconds: float) -> None:
        """Nothing to learn."""


class _Timed:
    """A proposer, and the seconds that it took by the real clock."""

    def __init__(self, proposer: Proposer) -> None:
        self.name, self.sources = proposer.name, proposer.sources
        self.seconds = 0.0
        self._proposer = proposer

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        start = perf_counter()
        try:
            return self._proposer.propose(contexts)
        finally:
            self.seconds += perf_counter() - start

    def learn(self, context: Context, draft: Draft, outcome: Outcome) -> None:
        self._proposer.learn(context, draft, outcome)

    def finish(self, request_id: int, answer: Sequence[int]) -> None:
        self._proposer.finish(request_id, answer)
