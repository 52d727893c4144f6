"""Several proposers as one: what one does not know, the next one does, within one draft."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from agentspec.draft import EMPTY, Draft
from agentspec.errors import GrammarError
from agentspec.grammar.base import Cursor
from agentspec.proposers.base import Chance, Context, Proposer
from agentspec.verify import Outcome

_LOG = logging.getLogger(__name__)


class ProposerPool:
    """Chains its members: each in turn continues the draft where the ones before it had nothing more to say.

    After a member that added something the first is asked again, so a draft may run through a frame that the grammar
    forces, a value from the context, a few tokens of a draft model, and the next frame. Every node keeps its source.
    Drafts stay inside the grammar. A member that raises is left out of the round, counted and warned about once.

    Args:
        members: In the order of trust; the last one is asked where no other knows.
        chance: A node's calibrated chance from (source, segment, score); default: the score itself.
        doubt: Below this chance a member's node is taken only where no later member knows better, in 0..1.
    """

    name = "pool"

    def __init__(self, members: Sequence[Proposer], *, chance: Chance | None = None, doubt: float = 0.45) -> None:
        self._members = tuple(members)
        self.sources = tuple(source for member in members for source in member.sources)
        self._chance = chance or (lambda source, segment, score, depth: score)
        self._doubt = doubt
        self.failures: Counter[str] = Counter()
        """How often each member raised."""

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        """A chain for each context, from one member or several."""
        chains = [_Chain(context) for context in contexts]
        while unfinished := [chain for chain in chains if not chain.full and chain.turn < len(self._members)]:
            turn = min(chain.turn for chain in unfinished)
            asked = [chain for chain in unfinished if chain.turn == turn]
            answers = self._ask(self._members[turn], [chain.context for chain in asked])
            for chain, answer in zip(asked, answers, strict=True):
                self._take(chain, answer)
        return [chain.draft for chain in chains]

    def learn(self, context: Context, draft: Draft, outcome: Outcome) -> None:
        """Pass it on to every member."""
        for member in self._members:
            self._guard(member, partial(member.learn, context, draft, outcome))

    def finish(self, request_id: int, answer: Sequence[int]) -> None:
        """Pass it on to every member."""
        for member in self._members:
            self._guard(member, partial(member.finish, request_id, answer))

    def _take(self, chain: _Chain, answer: Draft) -> None:
        """Let the answer of the member whose turn it is grow the chain, and decide whose turn is next."""
        last = chain.turn == len(self._members) - 1
        if chain.grow(answer, self._chance, least=0.0 if last else self._doubt):
            chain.turn = 0 if chain.turn else 1
        elif not last:
            chain.spare = chain.spare or answer
            chain.turn += 1
        else:  # nobody knew better, so the doubtful guess will do
            chain.turn = 0 if chain.grow(chain.spare, self._chance, least=0.0) else len(self._members)

    def _ask(self, member: Proposer, contexts: Sequence[Context]) -> Sequence[Draft]:
        answers: list[Sequence[Draft]] = []
        self._guard(member, lambda: answers.append(list(member.propose(contexts))))
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


class _Chain:
    """A draft under construction, and the context in which its next node stands."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.draft = EMPTY
        self.spare = EMPTY
        self.turn = 0

    @property
    def full(self) -> bool:
        """Whether the budget is spent."""
        return self.context.budget <= 0

    def grow(self, answer: Draft, chance: Chance, *, least: float) -> bool:
        """Append the first branch of the answer as far as it is legal and likely enough; whether there was any."""
        cursor, reach = self.context.cursor, self.context.reach
        kept: list[int] = []
        for node in _first_branch(answer)[: self.context.budget]:
            likely = chance(answer.sources[node], cursor.segment, answer.scores[node], len(self.draft) + len(kept))
            following = _after(cursor, answer.tokens[node])
            if following is None or not likely >= least:
                break
            cursor, reach = following, reach * likely
            kept.append(node)
        if kept:
            self._append(answer.cut(kept), cursor, reach)
        return bool(kept)

    def _append(self, addition: Draft, cursor: Cursor, reach: float) -> None:
        before = self.context
        self.draft, self.spare = self.draft.then(addition), EMPTY
        self.context = replace(
            before,
            tokens=[*before.tokens, *addition.tokens],
            guessed=before.guessed + len(addition),
            reach=reach,
            cursor=cursor,
            budget=before.budget - len(addition),
        )


def _after(cursor: Cursor, token: int) -> Cursor | None:
    """The place after `token`; None too where the grammar can't go on, which its request will hear from the target."""
    try:
        return cursor.advance(token)
    except GrammarError:
        return None


def _first_branch(draft: Draft) -> tuple[int, ...]:
    """The path that follows each node's first child."""
    path: list[int] = []
    for node, parent in enumerate(draft.parents):
        if parent == (path[-1] if path else -1):
            path.append(node)
    return tuple(path)
