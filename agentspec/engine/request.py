"""One request: the single place of truth about what was asked, what is written, and whether it is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agentspec.config import SamplingParams
from agentspec.draft import ROOT, Draft
from agentspec.errors import AgentSpecError, GrammarDeadEndError
from agentspec.grammar.base import FREE, Cursor, Guide
from agentspec.models.base import Row, Slot
from agentspec.places import DEAD_END, History, Place, branch_seed
from agentspec.proposers.base import Context, Tokens
from agentspec.segments import Segment
from agentspec.trace import Stats, StepRecord
from agentspec.verify import Outcome

FinishReason = Literal["stop", "length", "cancelled", "error"]


class StopRule(Protocol):
    """Ends an output for a reason that the engine can't see in the tokens: a stop string, say."""

    def feed(self, token: int) -> bool:
        """Take the next token of the output; whether it is the last one."""


class _Never:
    def feed(self, token: int) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """A token's log-probability under the model's unprocessed logits, and those of the likeliest tokens."""

    token: int
    logprob: float
    top: dict[int, float]


@dataclass(frozen=True, slots=True)
class Event:
    """News of a request: tokens that were just written, and the end.

    Attributes:
        tokens: New tokens, in order; the end token too, where the model wrote one.
        logprobs: One for each token, if they were asked for.
        finish_reason: None while the request goes on.
        error: Why, where the finish reason is "error".
        stats: Of the whole request, with its end.
        record: What the round did that gave the tokens.
    """

    tokens: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprobs, ...] = ()
    finish_reason: FinishReason | None = None
    error: AgentSpecError | None = None
    stats: Stats | None = None
    record: StepRecord | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a caller asks of the engine core.

    Attributes:
        prompt: Token ids, at least one.
        params: How to sample; `seed` must be set, and bad words must be token ids.
        guide: What the output must look like.
        stop_rule: Ends the output beside end tokens, length and grammar.
        speculate: Off: plain decoding, one token a forward.
        branch: Which of several answers to the same prompt this is.
        caller: Whose it is; see `Context.caller`.
        prediction: Tokens that the answer is expected to resemble: a source of drafts.
        listener: Called with every event, in the engine's thread; must not block.
    """

    prompt: Sequence[int]
    params: SamplingParams
    guide: Guide = FREE
    stop_rule: StopRule = field(default_factory=_Never)
    speculate: bool = True
    branch: int = 0
    caller: str = ""
    prediction: tuple[int, ...] = ()
    listener: Callable[[Event], None] = lambda event: None


class Request:
    """A running order.

    Args:
        request_id: Unique in the engine.
        order: What was asked.
        eos: Ids that end the output.
        context_length: The most tokens of prompt and output together.
        slot: Where its keys and values go.
    """

    def __init__(self, request_id: int, order: Order, *, eos: frozenset[int], context_length: int, slot: Slot) -> None:
        self.id = request_id
        self.order = order
        self.slot = slot
        self.tokens: list[int] = list(order.prompt)
        self.stats = Stats()
        self.finish_reason: FinishReason | None = None
        self.error: AgentSpecError | None = None
        self.cancelled = False
        self._eos = eos | set(order.params.stop_token_ids)
        self._cursor: Cursor = order.guide.start()
        self._history = History(order.prompt)
        self._seed = branch_seed(order.params.seed or 0, order.branch)
        room = context_length - len(order.prompt)
        self._limit = min(order.params.max_tokens or room, room)

    @property
    def segment(self) -> Segment:
        """Where the next token stands."""
        return self._cursor.segment

    @property
    def answer(self) -> list[int]:
        """The output so far; nothing after an error."""
        return [] if self.finish_reason == "error" else self.tokens[len(self.order.prompt) :]

    @property
    def written(self) -> int:
        """How many tokens of the output are known."""
        return len(self.tokens) - len(self.order.prompt)

    @property
    def ahead(self) -> int:
        """At least how many known tokens are not in the cache yet."""
        return len(self.tokens) - len(self.slot.tokens)

    def context(self, budget: int, rate: float) -> Context:
        """What proposers see; the last token that may be written is never drafted, the target gives it anyway."""
        most = min(budget, self._limit - self.written - 1) if self.order.speculate else 0
        return Context(
            request_id=self.id,
            tokens=Tokens.of(self.tokens),
            cursor=self._cursor,
            params=self.order.params,
            seed=self._seed,
            budget=max(most, 0),
            prompt_length=len(self.order.prompt),
            caller=self.order.caller,
            prediction=self.order.prediction,
            rate=rate,
        )

    def legal(self, draft: Draft, vocab_size: int, budget: int) -> Draft:
        """The draft without nodes that can't be accepted: outside grammar or vocabulary, or after an end token."""
        cursors: dict[int, Cursor] = {ROOT: self._cursor}
        for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
            if len(cursors) > budget or parent not in cursors:
                continue
            if not isinstance(token, int) or not 0 <= token < vocab_size:
                continue
            if parent != ROOT and draft.tokens[parent] in self._eos:
                continue
            following = cursors[parent].advance(token)
            if following is not None:
                cursors[node] = following
        return draft if len(cursors) > len(draft) else draft.cut(cursors)

    def row(self, draft: Draft, chunk: int) -> Row:
        """The request's part of the next forward: a chunk of what is pending, and the draft behind the last of it."""
        pending = self.slot.sync(self.tokens)
        if len(pending) > chunk:
            return Row(self.slot, pending[:chunk])
        return Row(self.slot, pending, draft)

    def is_last_chunk(self, row: Row) -> bool:
        """Whether the row reaches the last known token, so that its logits give new ones."""
        return len(row.slot.tokens) + len(row.pending) == len(self.tokens)

    def segments(self, draft: Draft) -> tuple[Segment, ...]:
        """Where each node of a legal draft stands."""
        cursors = self._cursors(draft)
        return tuple(cursors[parent].segment for parent in draft.parents)

    def places(self, draft: Draft) -> list[Place]:
        """Where the target picks: after the last known token, then after each node of a legal draft."""
        cursors = self._cursors(draft)
        paths: dict[int, tuple[int, ...]] = {ROOT: ()}
        for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
            paths[node] = (*paths[parent], token)
        params, start = self.order.params, len(self.tokens)
        return [
            Place(params, self._seed, start + len(path), cursors[node], self._history, path, self._eos)
            for node, path in paths.items()
        ]

    def accept(self, draft: Draft, outcome: Outcome) -> tuple[int, ...]:
        """Write the accepted tokens and the target's own, as far as the output goes; `finish_reason` says it's over."""
        written: list[int] = []
        for token in (*(draft.tokens[node] for node in outcome.path), outcome.bonus):
            if token == DEAD_END:
                self.fail(GrammarDeadEndError(f"no token may follow the {self.written} written: loosen the grammar"))
                break
            self._write(token)
            written.append(token)
            if self.finish_reason:
                break
        return tuple(written)

    def fail(self, error: AgentSpecError) -> None:
        """End the request with an error."""
        self.finish_reason, self.error = "error", error

    def tell(self, record: StepRecord | None = None, logprobs: tuple[TokenLogprobs, ...] = ()) -> None:
        """Tell the listener what a round wrote, and whether that was the end."""
        tokens = record.tokens if record else ()
        stats = self.stats if self.finish_reason else None
        self.order.listener(Event(tokens, logprobs, self.finish_reason, self.error, stats, record))

    def _cursors(self, draft: Draft) -> dict[int, Cursor]:
        """The place after each node."""
        cursors: dict[int, Cursor] = {ROOT: self._cursor}
        for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
            following = cursors[parent].advance(token)
            assert following is not None, "drafts are cut to what is legal before the forward"
            cursors[node] = following
        return cursors

    def _write(self, token: int) -> None:
        self.tokens.append(token)
        self._history.append(token)
        following = self._cursor.advance(token)
        stopped = self.order.stop_rule.feed(token)
        if token in self._eos or stopped:
            self.finish_reason = "stop"
        elif following is None:
            self.fail(GrammarDeadEndError(f"token {token} was picked against the grammar: please report this"))
        elif self.written >= self._limit:
            self.finish_reason = "length"
        else:
            self._cursor = following
