"""Several proposers as one: what one does not know, the next one does, within one draft."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter

from agentspec.draft import EMPTY, Draft
from agentspec.proposers.base import TRUSTING, Context, Judge, Proposer
from agentspec.proposers.growth import Growth
from agentspec.verify import Outcome

_LOG = logging.getLogger(__name__)

_SPARE = 2
"""How many times its budget a draft may have while it grows, so that the likeliest nodes can be chosen."""


class ProposerPool:
    """Grows one tree from what its members know: at the likeliest place that is open, again and again.

    At a place the members are asked in turn until one is sure. A doubtful answer stays in the tree beside those of the
    members after it: which of them is right the target says. So a draft may run through a frame that the grammar
    forces, part at an enumeration, take a value from the context, and go on with the next frame; a chain is the case
    where nobody names two tokens for one place. Every node keeps its source. Drafts stay inside the grammar. A member
    that raises is left out of the round, counted and warned about once.

    Args:
        members: In the order of trust; the last one is asked where no other is sure.
        judge: Knows what guesses are worth.
        doubt: Below this chance a member's answer does not keep the members after it from being asked, in 0..1.
        least: A place that is reached with a smaller chance is not asked at, in 0..1.
    """

    name = "pool"

    def __init__(
        self, members: Sequence[Proposer], *, judge: Judge = TRUSTING, doubt: float = 0.75, least: float = 0.05
    ) -> None:
        self._members = tuple(members)
        self.sources = tuple(source for member in members for source in member.sources)
        self._judge = judge
        for member in self._members:
            judge.introduce(member.name, member.sources)
        self._doubt = doubt
        self._least = least
        self.failures: Counter[str] = Counter()
        """How often each member raised."""

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        """A tree for each context, from one member or several."""
        growths = [
            Growth(context, self._judge.chance, most=_SPARE * context.budget, least=self._least) for context in contexts
        ]
        while open_places := [(growth, place) for growth in growths if (place := growth.next_place()) is not None]:
            self._grow(open_places)
        return [growth.draft() for growth in growths]

    def learn(self, context: Context, draft: Draft, outcome: Outcome) -> None:
        """Pass it on to every member."""
        for member in self._members:
            self._guard(member, partial(member.learn, context, draft, outcome))

    def finish(self, request_id: int, answer: Sequence[int]) -> None:
        """Pass it on to every member."""
        for member in self._members:
            self._guard(member, partial(member.finish, request_id, answer))

    def _grow(self, places: list[tuple[Growth, int]]) -> None:
        """Ask at one place of each draft, member by member, for as long as nobody is sure there."""
        for member in self._members:
            asked = [(growth, place, growth.context_at(place)) for growth, place in places]
            asked = [each for each in asked if self._asks(member, each[2], len(places))]
            answers = self._ask(member, [context for _, _, context in asked])
            sure = {
                id(growth)
                for (growth, place, _), answer in zip(asked, answers, strict=True)
                if growth.take(place, answer) >= self._doubt
            }
            places = [(growth, place) for growth, place in places if id(growth) not in sure]

    def _asks(self, member: Proposer, context: Context, rows: int) -> bool:
        return self._judge.asks(member.name, context.cursor.segment, context.reach, rows)

    def _ask(self, member: Proposer, contexts: Sequence[Context]) -> Sequence[Draft]:
        if not contexts:
            return []
        answers: list[Sequence[Draft]] = []
        started = perf_counter()
        self._guard(member, lambda: answers.append(list(member.propose(contexts))))
        self._judge.observe_draft(member.name, perf_counter() - started)
        if not answers or len(answers[0]) != len(contexts):
            return [EMPTY] * len(contexts)
        return [answer if isinstance(answer, Draft) else EMPTY for answer in answers[0]]

    def _guard(self, member: Proposer, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:  # whatever it is, a guess that fails costs time only, never the answer
            self.failures[member.name] += 1
            if self.failures[member.name] == 1:
                _LOG.warning("proposer %r failed and is left out: %r", member.name, error)
