"""Drafts from a small model of the target's family."""

from __future__ import annotations

import time
from collections.abc import Sequence

from agentspec.draft import EMPTY, Draft
from agentspec.grammar.base import Cursor
from agentspec.models.base import Row, Slot, TargetModel
from agentspec.models.prefix import PrefixCache
from agentspec.places import DEAD_END, Place
from agentspec.proposers.base import Chance, Context
from agentspec.sampling import chance, pick
from agentspec.verify import Outcome


class ModelProposer:
    """Lets a small model write on, token by token, with the target's own noise, temperature and grammar.

    Sharing the noise makes the two pick alike where their distributions are alike (arXiv 2408.07978). A chain ends
    where the grammar leaves no choice, where the next token is not worth the time, or at the budget.

    Args:
        model: The draft model; its ids must mean what the target's mean.
        eos: Ids after which nothing is drafted.
        calibrated: A node's chance from (source, segment, the model's own chance); default: the model's own.
        prefill_chunk: The most tokens in one of its forwards.
        prefix_cache_tokens: Tokens kept in the K/V columns of finished requests.
    """

    name = "model"
    sources = (name,)

    def __init__(
        self,
        model: TargetModel,
        *,
        eos: frozenset[int],
        calibrated: Chance | None = None,
        prefill_chunk: int = 512,
        prefix_cache_tokens: int = 16_384,
    ) -> None:
        self._model = model
        self._eos = eos
        self._calibrated = calibrated or (lambda source, segment, score, depth: score)
        self._chunk = prefill_chunk
        self._prefixes = PrefixCache(model.open, prefix_cache_tokens)
        self._slots: dict[int, Slot] = {}
        self._step_seconds = 0.0
        self._usual = 0.8

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        """A chain for each context, all of them drafted in one ragged batch."""
        chains = [_Chain(context) for context in contexts]
        while writing := [chain for chain in chains if self._goes_on(chain)]:
            self._step(writing)
        return [chain.draft(self.name) for chain in chains]

    def learn(self, context: Context, draft: Draft, outcome: Outcome) -> None:
        """Nothing: the slot itself drops rejected tokens when it is next synced."""

    def finish(self, request_id: int, answer: Sequence[int]) -> None:
        """Keep the slot for the conversation's next turn."""
        if slot := self._slots.pop(request_id, None):
            self._prefixes.give(slot)

    def _goes_on(self, chain: _Chain) -> bool:
        context, written = chain.context, len(chain.tokens)
        if written >= context.budget or chain.over:
            return False
        if len(context.tokens) + written >= self._model.context_length:
            return False
        if chain.cursor.forced(1):
            return False
        # Whoever asked has thought about the first guess; the others have to be worth their own time.
        return not written or chain.reach * self._usual >= self._step_seconds * context.rate

    def _step(self, chains: Sequence[_Chain]) -> None:
        started = time.perf_counter()
        rows = [self._row(chain.context, chain.tokens) for chain in chains]
        logits = self._model.forward(rows).logits
        picks = pick(logits, [chain.place(self._eos) for chain in chains])
        for chain, row, scores, token in zip(chains, rows, logits, picks, strict=True):
            row.slot.commit(row, ())
            if token == DEAD_END:
                chain.over = True
                continue
            score = chance(scores, token)
            depth = chain.context.guessed + len(chain.tokens)
            likely = self._calibrated(self.name, chain.cursor.segment, score, depth)
            self._usual += 0.05 * (likely - self._usual)
            chain.reach *= likely
            chain.append(token, score, self._eos)
        if max(row.width for row in rows) <= 8:
            seconds = time.perf_counter() - started
            self._step_seconds += 0.2 * (seconds - self._step_seconds) if self._step_seconds else seconds

    def _row(self, context: Context, written: Sequence[int]) -> Row:
        """The chain's row, after the pending tokens but for the last chunk went through the model."""
        tokens = [*context.tokens, *written]
        if context.request_id not in self._slots:
            self._slots[context.request_id] = self._prefixes.take(tokens)
        slot = self._slots[context.request_id]
        pending = slot.sync(tokens)
        while len(pending) > self._chunk:
            row = Row(slot, pending[: self._chunk])
            self._model.forward([row])
            slot.commit(row, ())
            pending = pending[self._chunk :]
        return Row(slot, pending)


class _Chain:
    """One context's draft under construction."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.cursor: Cursor = context.cursor
        self.tokens: list[int] = []
        self.scores: list[float] = []
        self.reach = context.reach
        self.over = False

    def place(self, eos: frozenset[int]) -> Place:
        """Where the next token stands, for the sampler."""
        context = self.context
        position = len(context.tokens) + len(self.tokens)
        return Place(context.params, context.seed, position, self.cursor, eos=eos)

    def append(self, token: int, score: float, eos: frozenset[int]) -> None:
        """Add a pick of the model, if it may follow."""
        following = self.cursor.advance(token)
        if following is None:
            self.over = True
            return
        self.tokens.append(token)
        self.scores.append(score)
        self.cursor = following
        self.over = token in eos

    def draft(self, source: str) -> Draft:
        """What was written."""
        return Draft.chain(self.tokens, source, self.scores) if self.tokens else EMPTY
