"""Doubles and assertions for whoever writes a proposer, a target or a frontend: shipped, and used by our own tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from agentspec.config import EngineConfig, SamplingParams
from agentspec.control import FixedController as FixedController
from agentspec.draft import EMPTY, Draft
from agentspec.engine.core import EngineCore
from agentspec.engine.request import Event, FinishReason, Order
from agentspec.models.base import Output, Row, TargetModel
from agentspec.models.token_slot import TokenSlot
from agentspec.proposers.base import Context, Off, Proposer
from agentspec.verify import Outcome


class ScriptedTarget:
    """A target whose logits are a function of the tokens before: no weights, exact arithmetic.

    Args:
        logits: From a sequence's tokens, prompt included, to its next token's logits by id; every other id has 0.
        vocab_size: Columns of the logits.
        eos: Ids that end an output.
        context_length: The most tokens of a sequence.
    """

    def __init__(
        self,
        logits: Callable[[Sequence[int]], dict[int, float]],
        *,
        vocab_size: int,
        eos: frozenset[int] = frozenset(),
        context_length: int = 4096,
    ) -> None:
        self._logits = logits
        self.vocab_size = vocab_size
        self.eos = eos
        self.context_length = context_length
        self.forwards = 0
        """How often `forward` was called."""
        self.slots: list[TokenSlot] = []
        """Every slot that `open` gave out."""

    @classmethod
    def writing(cls, prompt: Sequence[int], output: Sequence[int], *, vocab_size: int, end: int) -> ScriptedTarget:
        """A target that continues `prompt` with `output`, and off that script with `end`, each at logit 10."""
        script = [*prompt, *output]

        def logits(tokens: Sequence[int]) -> dict[int, float]:
            on_script = len(tokens) < len(script) and list(tokens) == script[: len(tokens)]
            return {script[len(tokens)] if on_script else end: 10.0}

        return cls(logits, vocab_size=vocab_size, eos=frozenset({end}))

    def open(self) -> TokenSlot:
        """An empty slot."""
        self.slots.append(TokenSlot())
        return self.slots[-1]

    def forward(self, rows: Sequence[Row]) -> Output:
        """The function's logits at every place of every row."""
        self.forwards += 1
        scores = [self._scores([*row.slot.tokens, *row.pending, *path]) for row in rows for path in _paths(row.draft)]
        return Output(torch.stack(scores))

    def _scores(self, tokens: Sequence[int]) -> torch.Tensor:
        scores = torch.zeros(self.vocab_size)
        for token, value in self._logits(tokens).items():
            scores[token] = value
        return scores


class ScriptedProposer:
    """A proposer that guesses what it was told to, whatever the context.

    Args:
        rounds: Tokens for each round in turn; after the last one it guesses nothing. One list is repeated for ever.
        name: What statistics call it.
    """

    def __init__(self, *rounds: Sequence[int], name: str = "scripted") -> None:
        self.name = name
        self.sources = (name,)
        self._rounds = rounds
        self._round: dict[int, int] = {}

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        """The next round's chain for each context, cut to its budget."""
        return [self._propose(context) for context in contexts]

    def learn(self, context: Context, draft: Draft, outcome: Outcome) -> None:
        """Go on to the next round."""
        self._round[context.request_id] = self._round.get(context.request_id, 0) + 1

    def finish(self, request_id: int, answer: Sequence[int]) -> None:
        """Forget the request."""
        self._round.pop(request_id, None)

    def _propose(self, context: Context) -> Draft:
        place = 0 if len(self._rounds) == 1 else self._round.get(context.request_id, 0)
        tokens = self._rounds[place] if place < len(self._rounds) else ()
        return Draft.chain(tokens[: context.budget], self.name, 0.9) if tokens else EMPTY


@dataclass(frozen=True)
class Answer:
    """What an order came to."""

    tokens: tuple[int, ...]
    finish_reason: FinishReason
    events: tuple[Event, ...]


def run(
    target: TargetModel,
    proposer: Proposer,
    *orders: Order,
    max_draft: int = 8,
    config: EngineConfig | None = None,
) -> list[Answer]:
    """Run orders to their end in one batch, in this thread, with drafts of up to `max_draft` nodes."""
    core = EngineCore(
        target, proposer, controller=FixedController(max_draft), config=config or EngineConfig(max_draft=max_draft)
    )
    heard: list[list[Event]] = [[] for _ in orders]
    for order, events in zip(orders, heard, strict=True):
        core.add(replace(order, listener=events.append))
    while not core.idle:
        core.step()
    core.close()
    return [_answer(events) for events in heard]


def assert_lossless(
    target: TargetModel, proposer: Proposer, *orders: Callable[[], Order], max_draft: int = 8
) -> list[Answer]:
    """Assert that the proposer changes no token, finish reason or count; returns the answers.

    Args:
        target: Whose tokens they are.
        proposer: Whatever it guesses.
        orders: Each makes one order anew, since guides and stop rules may hold state.
        max_draft: The most nodes of a draft.
    """
    plain = [run(target, Off(), order())[0] for order in orders]
    drafted = run(target, proposer, *(order() for order in orders), max_draft=max_draft)
    for expected, found in zip(plain, drafted, strict=True):
        assert found.tokens == expected.tokens, f"{found.tokens} is not plain decoding's {expected.tokens}"
        assert found.finish_reason == expected.finish_reason
    return drafted


def order(prompt: Sequence[int], **params: object) -> Order:
    """An order with these sampling parameters and, unless given, the seed 0."""
    return Order(prompt=prompt, params=SamplingParams.of({"seed": 0, **params}))


def _answer(events: Sequence[Event]) -> Answer:
    last = events[-1]
    if last.error:
        raise last.error
    assert last.finish_reason is not None
    return Answer(tuple(token for event in events for token in event.tokens), last.finish_reason, tuple(events))


def _paths(draft: Draft) -> list[list[int]]:
    return [[]] + [[draft.tokens[each] for each in draft.path(node)] for node in range(len(draft))]
