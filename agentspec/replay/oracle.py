"""Replays recorded answers without a model: the recording takes the target's place, everything else is the engine's.

The core, its proposers and its controller are those that decode. A forward costs what a table says that it would cost,
on a clock that stands still otherwise, so a report is the same each time; what drafting costs is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from agentspec.config import EngineConfig
from agentspec.control import FixedController, SpeculationController
from agentspec.cost import CostTable
from agentspec.draft import ROOT
from agentspec.engine.core import EngineCore
from agentspec.engine.request import Event, Order
from agentspec.errors import TraceError
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.models.base import Output, Row
from agentspec.models.token_slot import TokenSlot
from agentspec.places import Place
from agentspec.proposers.answers import AnswerStore
from agentspec.proposers.registry import build_proposer
from agentspec.trace import Stats

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

    @property
    def _end(self) -> int:
        return min(self.eos, default=0)


@dataclass(slots=True)
class OracleRun:
    """What a recording would have taken.

    Attributes:
        stats: Of each answer, in order.
        plain_ms: Of each answer, without drafts, from its second token on.
    """

    stats: list[Stats] = field(default_factory=list)
    plain_ms: list[float] = field(default_factory=list)


def run_oracle(
    recorded: Iterable[Recorded],
    vocabulary: Vocabulary,
    cost: CostTable,
    *,
    proposers: Sequence[str] | None = None,
    budget: int | None = None,
    config: EngineConfig | None = None,
) -> OracleRun:
    """Decode recorded answers one after another, with what each one teaches.

    Args:
        recorded: In the order in which they were written.
        vocabulary: Of the tokenizer that they are written with.
        cost: Of a forward.
        proposers: See `build_proposer`; a draft model can't be among them.
        budget: A fixed one; None: the adaptive controller's.
        config: Sizes.

    Raises:
        TraceError: An answer can't be written again: a token may not stand where it does under the order's guide, or
            it ends elsewhere.
    """
    config = config or EngineConfig()
    oracle = Oracle(vocab_size=len(vocabulary.tokens), eos=vocabulary.eos, cost=cost)
    control: SpeculationController = SpeculationController(max_draft=config.max_draft, cost=cost)
    if budget is not None:
        control = FixedController(budget)
    proposer = build_proposer(
        proposers, vocabulary=vocabulary, draft_model=None, judge=control, answers=AnswerStore(shared=False)
    )
    core = EngineCore(oracle, proposer, controller=control, config=config, picker=oracle, clock=oracle.clock)
    run = OracleRun()
    for each in recorded:
        run.stats.append(_decode(core, oracle, each))
        run.plain_ms.append((len(each.answer) - 1) * cost.base_ms)
    return run


def _decode(core: EngineCore, oracle: Oracle, recorded: Recorded) -> Stats:
    written: list[int] = []
    ends: list[Event] = []

    def hear(event: Event) -> None:
        written.extend(event.tokens)
        if event.finish_reason:
            ends.append(event)

    oracle.write(recorded)
    core.add(replace(recorded.order, listener=hear))
    while not core.idle:
        core.step()
    if tuple(written) != recorded.answer:
        reason = ends[0].error if ends and ends[0].error else f"{len(written)} tokens of {len(recorded.answer)}"
        raise TraceError(f"the recorded answer can't be written again: {reason}")
    assert ends[0].stats is not None, "an answer's last event has its sums"
    return ends[0].stats
