"""The loop: draft, verify, commit. Plain decoding is the same loop with nothing drafted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from agentspec.config import EngineConfig
from agentspec.control import SpeculationController
from agentspec.draft import EMPTY, Draft
from agentspec.engine.check import check_order
from agentspec.engine.request import Event, Order, Request, TokenLogprobs
from agentspec.engine.scheduler import Scheduler
from agentspec.errors import AgentSpecError, EngineError
from agentspec.models.base import Row, Slot, TargetModel
from agentspec.models.prefix import PrefixCache
from agentspec.places import Place
from agentspec.proposers.base import Context, Proposer
from agentspec.trace import StepRecord
from agentspec.verify import verify

if TYPE_CHECKING:
    from torch import Tensor

_LOG = logging.getLogger(__name__)


class Picker(Protocol):
    """Picks the target's tokens: `agentspec.sampling`, or what was recorded of it."""

    def pick(self, logits: Tensor, places: Sequence[Place]) -> Sequence[int]:
        """The token at each place, or `DEAD_END`."""

    def logprobs(self, logits: Tensor, token: int, top: int) -> tuple[float, dict[int, float]]:
        """A token's log-probability, and those of the likeliest tokens."""


@dataclass(slots=True)
class _Part:
    """One request's part of a round, from its context to what it wrote."""

    request: Request
    context: Context
    row: Row
    logits: Tensor
    places: list[Place]


@dataclass(frozen=True, slots=True)
class _Round:
    """What all requests of a round share.

    Attributes:
        started: When it began.
        decoding: Whether every row had just one pending token, so that the round tells what decoding costs.
    """

    started: float
    propose_ms: float
    forward_ms: float
    rows: int
    width: int
    decoding: bool


class EngineCore:
    """Owns the target, the slots and the running requests; belongs to one thread.

    Args:
        target: Picks every token.
        proposer: Guesses them.
        controller: Decides how much is guessed.
        config: Sizes.
        picker: Picks every token; None: `agentspec.sampling`.
        clock: In seconds.
    """

    def __init__(
        self,
        target: TargetModel,
        proposer: Proposer,
        *,
        controller: SpeculationController,
        config: EngineConfig,
        picker: Picker | None = None,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._target = target
        self._picker = picker or _sampling()
        self._clock = clock
        self._proposer = proposer
        self._controller = controller
        self._chunk = config.prefill_chunk
        self._strict = config.strict
        self._context_length = target.context_length - (config.max_draft if config.strict else 0)
        self._drafts_behind = 1 if config.strict else self._chunk
        self._prefixes = PrefixCache(target.open, config.prefix_cache_tokens)
        self._scheduler = Scheduler(1 if config.strict else config.max_running, self._start)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return self._scheduler.idle

    def check(self, order: Order) -> None:
        """Refuse an order that can't be run: see `check_order`. Safe in any thread."""
        check_order(order, vocab_size=self._target.vocab_size, context_length=self._context_length)

    def add(self, order: Order) -> int:
        """Queue an order; its request id."""
        self.check(order)
        return self._scheduler.add(order)

    def cancel(self, request_id: int) -> None:
        """End a request before its next round; one that is over or unknown is left alone."""
        if order := self._scheduler.cancel(request_id):
            order.listener(Event(finish_reason="cancelled"))

    def step(self) -> None:
        """Advance every running request, by a chunk of its prompt or by at least one token; tell the listeners."""
        started = self._clock()
        requests = [request for request in self._scheduler.admit() if not self._is_cancelled(request)]
        if requests:
            contexts = self._contexts(requests)
            drafts = self._drafts(requests, contexts)
            rows = [request.row(draft, self._chunk) for request, draft in zip(requests, drafts, strict=True)]
            proposed = self._clock()
            logits = self._target.forward(rows).logits
            forwarded = self._clock()
            shared = _Round(
                started,
                propose_ms=1000 * (proposed - started),
                forward_ms=1000 * (forwarded - proposed),
                rows=len(rows),
                width=sum(row.width for row in rows),
                decoding=all(len(row.pending) == 1 for row in rows),
            )
            for part in self._parts(requests, contexts, rows, logits):
                self._finish_part(part, shared)
            if shared.decoding:
                self._controller.observe_forward(shared.width, shared.forward_ms, shared.rows)
        self._retire()

    def fail(self, error: AgentSpecError) -> None:
        """End every request, running or waiting, with an error."""
        for order in self._scheduler.drain():
            order.listener(Event(finish_reason="error", error=error))
        for request in self._scheduler.running:
            request.fail(error)
            request.tell()
        self._retire()

    def close(self) -> None:
        """Free the K/V columns; running requests end with an error."""
        self.fail(EngineError("the engine was closed"))
        self._prefixes.close()

    def _start(self, request_id: int, order: Order) -> Request | None:
        """A running request for an order; None, and an answer, if there is no room for it or its guide can't start."""
        try:
            slot = self._slot(order)
            request = Request(request_id, order, eos=self._target.eos, context_length=self._context_length, slot=slot)
        except Exception as error:  # whatever it is, the one who waits for this order has to hear of it
            order.listener(Event(finish_reason="error", error=_failure("a request could not be started", error)))
            return None
        if order.speculate:
            for counts in (request.stats.drafted, request.stats.accepted):
                counts.update(dict.fromkeys(self._proposer.sources, 0))
        return request

    def _slot(self, order: Order) -> Slot:
        if self._strict:
            return self._target.open()
        return self._prefixes.take(order.prompt, [request.slot for request in self._scheduler.running])

    def _is_cancelled(self, request: Request) -> bool:
        if request.cancelled:
            request.finish_reason = "cancelled"
            request.tell()
        return request.cancelled

    def _contexts(self, requests: Sequence[Request]) -> list[Context]:
        control, rows = self._controller, len(requests)
        return [
            request.context(control.budget(request.segment, rows), control.rate(request.segment))
            for request in requests
        ]

    def _drafts(self, requests: Sequence[Request], contexts: Sequence[Context]) -> list[Draft]:
        """A draft for each request: legal, and no longer than pays; none while the prompt is not through."""
        ready = [
            place
            for place, (request, context) in enumerate(zip(requests, contexts, strict=True))
            if context.budget and request.ahead <= self._drafts_behind
        ]
        drafts = [EMPTY] * len(requests)
        if not ready:
            return drafts
        try:
            guesses = self._proposer.propose([contexts[place] for place in ready])
            for place, guess in zip(ready, guesses, strict=True):
                request, context = requests[place], contexts[place]
                legal = request.legal(guess, self._target.vocab_size, context.budget)
                drafts[place] = self._controller.trim(legal, request.segments(legal), rows=len(requests))
        except Exception as error:  # a guess may cost time, never an answer
            _LOG.warning("drafting failed, this round goes on without: %r", error)
            return [EMPTY] * len(requests)
        return drafts

    def _parts(
        self, requests: Sequence[Request], contexts: Sequence[Context], rows: Sequence[Row], logits: Tensor
    ) -> Iterator[_Part]:
        start = 0
        for request, context, row in zip(requests, contexts, rows, strict=True):
            end = start + 1 + len(row.draft)
            yield _Part(request, context, row, logits[start:end], request.places(row.draft))
            start = end

    def _finish_part(self, part: _Part, shared: _Round) -> None:
        request, row = part.request, part.row
        if not request.written:
            request.stats.prefill_tokens += len(row.pending)
        if not request.is_last_chunk(row):
            row.slot.commit(row, ())
            request.stats.prefill_ms += 1000 * (self._clock() - shared.started)
            return
        segment, segments = request.segment, request.segments(row.draft)
        began = self._clock()
        try:
            outcome = verify(row.draft, self._picker.pick(part.logits, part.places))
            picked = self._clock()
            tokens = request.accept(row.draft, outcome)
        except Exception as error:  # this request alone: the others of the batch have nothing to do with it
            request.fail(error if isinstance(error, AgentSpecError) else _failure("a pick failed", error))
            request.tell()
            return
        path = outcome.path[: max(len(tokens) - 1, 0)]
        row.slot.commit(row, path)
        self._proposer.learn(part.context, row.draft, outcome)
        record = StepRecord(
            request.id,
            segment,
            row.draft,
            segments,
            outcome.path[: len(tokens)],
            tokens,
            rows=shared.rows,
            width=shared.width,
            propose_ms=shared.propose_ms,
            forward_ms=shared.forward_ms,
            total_ms=1000 * (self._clock() - shared.started),
            pick_ms=1000 * (picked - began),
        )
        request.stats.add(record)
        if shared.decoding:
            self._controller.observe(record)
        request.tell(record, self._logprobs(part, outcome.path, tokens))

    def _logprobs(self, part: _Part, path: Sequence[int], tokens: Sequence[int]) -> tuple[TokenLogprobs, ...]:
        top = part.request.order.params.logprobs
        if top is None:
            return ()
        logits_rows = [0, *(node + 1 for node in path)]
        return tuple(
            TokenLogprobs(token, *self._picker.logprobs(part.logits[row], token, top))
            for row, token in zip(logits_rows, tokens, strict=False)
        )

    def _retire(self) -> None:
        for request in self._scheduler.retire():
            self._proposer.finish(request.id, request.answer)
            if request.finish_reason == "error" or self._strict:
                request.slot.close()
            else:
                self._prefixes.give(request.slot)


def _sampling() -> Picker:
    from agentspec import sampling  # brings torch, which a picker of records has no need of

    return sampling


def _failure(what: str, error: Exception) -> EngineError:
    failure = EngineError(f"{what}: {error!r}")
    failure.__cause__ = error
    return failure
