"""Drafts from the grammar: text that has to come next."""

from __future__ import annotations

from collections.abc import Sequence

from agentspec.draft import EMPTY, Draft
from agentspec.proposers.base import Context
from agentspec.verify import Outcome


class GrammarProposer:
    """Proposes the tokens that the cursor forces, as the tokenizer would split them.

    The target may split the same text otherwise, so they are verified like any other guess.
    """

    name = "grammar"
    sources = (name,)

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        """A chain of forced tokens for each context; empty where the grammar leaves a choice."""
        return [self._propose(context) for context in contexts]

    def learn(self, context: Context, draft: Draft, outcome: Outcome) -> None:
        """Nothing to learn: the grammar is given."""

    def finish(self, request_id: int, answer: Sequence[int]) -> None:
        """Nothing to forget."""

    def _propose(self, context: Context) -> Draft:
        forced = context.cursor.forced(context.budget)
        return Draft.chain(forced, self.name, 0.97) if forced else EMPTY
