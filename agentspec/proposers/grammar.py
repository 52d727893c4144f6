"""Drafts from the grammar: text that has to come next, and the few texts of which one has to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from agentspec.draft import EMPTY, ROOT, Draft
from agentspec.errors import GrammarError
from agentspec.grammar.base import Cursor, Mask
from agentspec.grammar.track import likely
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.proposers.base import Context
from agentspec.verify import Outcome

_FORCED = 0.97
_MOST_TOKENS = 512
_MOST_CHOICES = 8
"""Where more is possible, only what this conversation has shown is guessed."""


class GrammarProposer:
    """Proposes the tokens that the cursor forces, and where few strings are possible, each of them with what it forces.

    A tool's name, an enumeration, true or false, the next key or the end of the object: the strings are a small tree,
    ordered by how often each stood behind the same two tokens in this conversation, or else anywhere in it. The target
    may split the same text otherwise, so all of it is verified like any other guess. Where nothing holds the text but
    it looks like a tool call, it drafts on as if it were one.

    Args:
        vocabulary: The text of each token.
    """

    name = "grammar"
    sources = (name,)

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._habits: dict[int, _Habits] = {}

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        """A tree for each context; empty where the grammar leaves too much open."""
        return [self._propose(context) for context in contexts]

    def learn(self, context: Context, draft: Draft, outcome: Outcome) -> None:
        """Nothing to learn: the grammar is given, and habits are read off the tokens."""

    def finish(self, request_id: int, answer: Sequence[int]) -> None:
        """Forget the conversation's habits."""
        self._habits.pop(request_id, None)

    def _propose(self, context: Context) -> Draft:
        start = likely(context.cursor)
        forced = start.forced(context.budget)
        cursor = _walk(start, forced)
        frame = Draft.chain(forced, self.name, _FORCED) if forced else EMPTY
        if cursor is None or len(frame) >= context.budget:
            return frame
        tokens = self._choices(cursor)
        if not tokens:
            return frame
        before = [*context.tokens[-2:], *forced][-2:]
        shares = self._shares(context, (before[0], before[-1]), tokens)
        return frame.then(self._tree(cursor, shares, context.budget - len(frame)))

    def _tree(self, cursor: Cursor, shares: dict[int, float], room: int) -> Draft:
        """Each possible token, the likeliest first, and under it what it forces."""
        tokens: list[int] = []
        parents: list[int] = []
        scores: list[float] = []
        for token, share in sorted(shares.items(), key=lambda item: -item[1]):
            following = cursor.advance(token)
            tail = following.forced(max(room - len(tokens) - 1, 0)) if following is not None else ()
            parents += [ROOT, *range(len(tokens), len(tokens) + len(tail))]
            tokens += [token, *tail]
            scores += [share, *([_FORCED] * len(tail))]
            if len(tokens) >= room:
                break
        size = min(len(tokens), room)
        return Draft(tuple(tokens[:size]), tuple(parents[:size]), tuple(scores[:size]), (self.name,) * size)

    def _choices(self, cursor: Cursor) -> list[int]:
        """The tokens that begin the texts that may come next; none where there are very many."""
        try:
            mask = cursor.mask()
        except GrammarError:  # the request hears of it from the target
            return []
        allowed = _members(mask) if mask is not None else ()
        known = self._vocabulary.tokens
        return _longest({token: known[token] for token in allowed if token < len(known)})

    def _shares(self, context: Context, before: tuple[int, int], tokens: Sequence[int]) -> dict[int, float]:
        """The chance of the likely tokens, from how often each stood behind the two tokens before."""
        habits = self._habits.setdefault(context.request_id, _Habits())
        habits.extend(context.tokens, len(context.tokens) - context.guessed)
        counts = habits.after(before)
        if len(tokens) > _MOST_CHOICES:
            tokens = [token for token, _ in counts.most_common() if token in set(tokens)][:_MOST_CHOICES]
        elif not any(token in counts for token in tokens):
            counts = habits.alone
        total = sum(counts[token] for token in tokens)
        return {token: (counts[token] + 1 / len(tokens)) / (total + 1) for token in tokens}


class _Habits:
    """What stood behind each pair of tokens in one conversation, updated as it grows.

    Attributes:
        alone: How often each token stood anywhere.
    """

    def __init__(self) -> None:
        self.alone: Counter[int] = Counter()
        self._after: defaultdict[tuple[int, int], Counter[int]] = defaultdict(Counter)
        self._size = 2

    def extend(self, tokens: Sequence[int], size: int) -> None:
        """Count the first `size` tokens."""
        if size > self._size:
            new = list(tokens[self._size - 2 : size])
            self.alone.update(new[2:])
            for place in range(2, len(new)):
                self._after[new[place - 2], new[place - 1]][new[place]] += 1
            self._size = size

    def after(self, pair: tuple[int, int]) -> Counter[int]:
        """How often each token stood behind a pair."""
        return self._after.get(pair, Counter())


def _walk(cursor: Cursor, tokens: Sequence[int]) -> Cursor | None:
    following: Cursor | None = cursor
    for token in tokens:
        following = following.advance(token) if following is not None else None
    return following


def _members(mask: Mask) -> Sequence[int]:
    """The tokens that a mask has; none if they are many."""
    words = np.flatnonzero(mask)
    if len(words) > _MOST_TOKENS or int(np.bitwise_count(mask[words]).sum()) > _MOST_TOKENS:
        return ()
    bits = np.unpackbits(mask[words].view(np.uint8), bitorder="little").reshape(len(words), 32)
    rows, columns = np.nonzero(bits)
    tokens: list[int] = (words[rows] * 32 + columns).tolist()
    return tokens


def _longest(texts: Mapping[int, bytes]) -> list[int]:
    """The tokens that no other one begins with: the tokenizer would rather take the longer one."""
    ordered = sorted(set(texts.values()))
    begin = {text for text, following in pairwise(ordered) if following.startswith(text)}
    return [token for token, text in texts.items() if text not in begin]
