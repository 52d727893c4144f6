"""Drafts from the history: what followed the same tokens the last time they stood in this request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from agentspec.draft import EMPTY, Draft
from agentspec.proposers.base import Context
from agentspec.verify import Outcome

_KEY = 2
_MOST_PLACES = 16
_LONGEST_MATCH = 24


class NgramProposer:
    """Prompt lookup: copy what followed the longest earlier match of the last tokens, the latest match on a tie.

    The match is at least two tokens, and what followed it must be something that may follow here. A longer match is
    surer, and every accepted node makes it longer.
    """

    name = "ngram"
    sources = (name,)

    def __init__(self) -> None:
        self._indexes: dict[int, _Index] = {}

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        """A chain for each context, from its own tokens only."""
        return [self._propose(context) for context in contexts]

    def learn(self, context: Context, draft: Draft, outcome: Outcome) -> None:
        """Nothing: the tokens themselves are the memory."""

    def finish(self, request_id: int, answer: Sequence[int]) -> None:
        """Drop the request's index."""
        self._indexes.pop(request_id, None)

    def _propose(self, context: Context) -> Draft:
        tokens, known = context.tokens, len(context.tokens) - context.guessed
        index = self._indexes.setdefault(context.request_id, _Index())
        index.extend(tokens, known)
        matches = index.matches(tokens)
        match = next((match for match in matches if context.cursor.advance(tokens[match[1]]) is not None), None)
        if match is None:
            return EMPTY
        length, place = match
        copied: list[int] = []
        for offset in range(place, place + context.budget):
            # A match near the end runs into what it has just copied: a repetition goes on.
            copied.append(tokens[offset] if offset < len(tokens) else copied[offset - len(tokens)])
        return Draft.chain(copied, self.name, [_score(length + depth) for depth in range(len(copied))])


class _Index:
    """Where each pair of tokens stands in one request, updated as it grows."""

    def __init__(self) -> None:
        self._places: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        self._end = _KEY

    def extend(self, tokens: Sequence[int], known: int) -> None:
        """Index the first `known` tokens; the place of a pair is that of the token after it."""
        for end in range(self._end, known):
            self._places[tuple(tokens[end - _KEY : end])].append(end)
        self._end = max(self._end, known)

    def matches(self, tokens: Sequence[int]) -> list[tuple[int, int]]:
        """Earlier matches of the last tokens, best first: the match's length, and the place after it."""
        size = len(tokens)
        found: list[tuple[int, int]] = []
        for place in self._places.get(tuple(tokens[-_KEY:]), ())[-_MOST_PLACES:]:
            length = _KEY
            while length < min(place, _LONGEST_MATCH) and tokens[place - length - 1] == tokens[size - length - 1]:
                length += 1
            if place < size:
                found.append((length, place))
        return sorted(found, reverse=True)


def _score(length: int) -> float:
    """A first guess at the chance that the token after a match of this length is the same again."""
    return 1 - 0.9 / (1 + 0.35 * length)
