"""The seam between the engine and whatever guesses the next tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Protocol, overload

from agentspec.config import SamplingParams
from agentspec.draft import EMPTY, Draft
from agentspec.grammar.base import Cursor
from agentspec.segments import Segment
from agentspec.verify import Outcome

Chance = Callable[[str, Segment, float, int], float]
"""A node's calibrated chance of being accepted once its parent is.

From its source, its segment, the source's score, and its depth in the whole draft, 0 for the first level.
"""


class Judge(Protocol):
    """Knows what guesses were worth so far."""

    def chance(self, source: str, segment: Segment, score: float, depth: int = 0) -> float:
        """See `Chance`."""

    def introduce(self, proposer: str, sources: Sequence[str]) -> None:
        """Hear which sources the nodes of a proposer may name."""

    def asks(self, proposer: str, segment: Segment, reach: float, rows: int) -> bool:
        """Whether a proposer's guess at a place that is reached with chance `reach` is worth the time of its call."""

    def observe_draft(self, proposer: str, seconds: float) -> None:
        """Hear what a call took."""


class _Trusting:
    """Takes every source at its word, and never minds the time."""

    def chance(self, source: str, segment: Segment, score: float, depth: int = 0) -> float:
        return score

    def introduce(self, proposer: str, sources: Sequence[str]) -> None:
        pass

    def asks(self, proposer: str, segment: Segment, reach: float, rows: int) -> bool:
        return True

    def observe_draft(self, proposer: str, seconds: float) -> None:
        pass


TRUSTING = _Trusting()
"""The judge that has seen nothing and believes everything."""


class Tokens(Sequence[int]):
    """The tokens that are known so far with a guess behind them: a view, so that a long prompt is never copied.

    Args:
        known: May grow later; what is added to it does not show.
        guess: What is supposed to follow.
    """

    __slots__ = ("_guess", "_known", "_size")

    def __init__(self, known: list[int], size: int, guess: Sequence[int] = ()) -> None:
        self._known, self._size, self._guess = known, size, guess

    @classmethod
    def of(cls, tokens: Sequence[int], guess: Sequence[int] = ()) -> Tokens:
        """A view of these tokens, with a guess behind them."""
        if isinstance(tokens, Tokens):
            return cls(tokens._known, tokens._size, [*tokens._guess, *guess])
        known = tokens if isinstance(tokens, list) else list(tokens)
        return cls(known, len(known), guess)

    def __len__(self) -> int:
        return self._size + len(self._guess)

    def __iter__(self) -> Iterator[int]:
        return chain(islice(self._known, self._size), self._guess)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                guess = self._guess[max(start - self._size, 0) : max(stop - self._size, 0)]
                return [*self._known[start : min(stop, self._size)], *guess]
            return [self[each] for each in range(start, stop, step)]
        index += len(self) if index < 0 else 0
        if not 0 <= index < len(self):
            raise IndexError(f"token {index} of {len(self)}")
        return self._known[index] if index < self._size else self._guess[index - self._size]


@dataclass(frozen=True, slots=True)
class Context:
    """A read-only view of one request, all that a proposer may know of it.

    Attributes:
        request_id: Constant over a request's life.
        tokens: Prompt and output so far; the draft follows the last one.
        guessed: How many of the last tokens are a draft themselves, which the proposer is asked to continue.
        reach: The chance that all of these are accepted, in 0..1.
        prompt_length: How many of the first tokens are the prompt; what follows is the answer.
        caller: Whose request it is: what one caller's answers taught is not used for another.
        prediction: Tokens that the caller expects the answer to resemble, often none.
        cursor: The place after the last token, under the grammar.
        params: How the target samples. A proposer never sees stop strings' effect: drafts may run past them.
        seed: Of the request's noise, so that a draft model can share it with the target.
        budget: The most nodes that the draft may have.
        rate: Tokens per second that the request makes now, 0 if unknown: time spent on a guess must bring more.
    """

    request_id: int
    tokens: Sequence[int]
    cursor: Cursor
    params: SamplingParams
    seed: int
    budget: int
    prompt_length: int = 0
    caller: str = ""
    prediction: tuple[int, ...] = ()
    rate: float = 0.0
    guessed: int = 0
    reach: float = 1.0


class Proposer(Protocol):
    """A source of drafts. It can't hurt the text, only the time: the target picks every token."""

    @property
    def name(self) -> str:
        """What statistics call it."""

    @property
    def sources(self) -> tuple[str, ...]:
        """What the nodes of its drafts may name as their source, so that one that never guesses is seen."""

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        """A draft for each context, in order, of at most its budget; empty where there is no good guess."""

    def learn(self, context: Context, draft: Draft, outcome: Outcome) -> None:
        """Hear which nodes of the draft that was verified were accepted."""

    def finish(self, request_id: int, answer: Sequence[int]) -> None:
        """The request is over, with this answer (empty after an error): forget what belongs to it."""


class Off:
    """The proposer that never guesses: plain decoding."""

    name = "off"
    sources = ()

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        """No guess for anyone."""
        return [EMPTY] * len(contexts)

    def learn(self, context: Context, draft: Draft, outcome: Outcome) -> None:
        """Nothing to learn."""

    def finish(self, request_id: int, answer: Sequence[int]) -> None:
        """Nothing to forget."""
