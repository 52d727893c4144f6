"""A draft that grows: a tree of guesses, the places where it may go on, and how likely each of them is."""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush

from agentspec.draft import EMPTY, ROOT, Draft
from agentspec.errors import GrammarError
from agentspec.grammar.base import Cursor
from agentspec.proposers.base import Chance, Context, Tokens


class Growth:
    """One request's draft under construction.

    A place is a node, or `ROOT`. It is open while nobody was asked what follows it; the likeliest open place is the one
    to ask at next. Nodes that several sources guess are one node, credited to the source with the best chance.

    Args:
        context: At the root.
        chance: A node's calibrated chance.
        most: How many nodes the tree may have while it grows; `draft` keeps the likeliest.
        least: A place reached with a smaller chance than this is not asked at.
    """

    def __init__(self, context: Context, chance: Chance, *, most: int, least: float) -> None:
        self._context = context
        self._chance = chance
        self._most = most
        self._least = least
        self._tokens: list[int] = []
        self._parents: list[int] = []
        self._scores: list[float] = []
        self._sources: list[str] = []
        self._chances: list[float] = []
        self._cursors: dict[int, Cursor] = {ROOT: context.cursor}
        self._reach: dict[int, float] = {ROOT: context.reach}
        self._depths: dict[int, int] = {ROOT: 0}
        self._children: dict[tuple[int, int], int] = {}
        self._open: list[tuple[float, int]] = [(-context.reach, ROOT)]
        self._asked = ROOT, 0
        self._asked_context = context

    def next_place(self) -> int | None:
        """The likeliest open place, which is open no more; None if the draft is grown."""
        if len(self._tokens) >= self._most or not self._open or -self._open[0][0] < self._least:
            return None
        return heappop(self._open)[1]

    def context_at(self, place: int) -> Context:
        """What a proposer sees that is asked what follows a place."""
        if place == ROOT:
            return self._context
        asked = place, len(self._tokens)
        if self._asked != asked:  # else the next proposer is asked there, and nothing has grown since
            self._asked, self._asked_context = asked, self._context_at(place)
        return self._asked_context

    def _context_at(self, place: int) -> Context:
        path, known = self._path(place), self._context
        return replace(
            known,
            tokens=Tokens.of(known.tokens, path),
            guessed=known.guessed + len(path),
            reach=self._reach[place],
            cursor=self._cursors[place],
            budget=min(known.budget, self._most - len(self._tokens)),
        )

    def take(self, place: int, answer: Draft) -> float:
        """Grow by the legal part of an answer; the chance of its likeliest first node, 0 if it has none."""
        put: dict[int, int] = {ROOT: place}
        likeliest = 0.0
        for node, token in enumerate(answer.tokens):
            parent = put.get(answer.parents[node])
            if parent is None or len(self._tokens) >= self._most:
                continue
            found = self._put(parent, token, score=answer.scores[node], source=answer.sources[node])
            if found is not None:
                put[node] = found
                likeliest = max(likeliest, self._chances[found]) if parent == place else likeliest
        inner = {self._parents[node] for node in put.values() if node != place}
        for node in set(put.values()) - inner - {place}:
            heappush(self._open, (-self._reach[node], node))
        return likeliest

    def draft(self) -> Draft:
        """The likeliest nodes, as many as the budget has."""
        whole = Draft(tuple(self._tokens), tuple(self._parents), tuple(self._scores), tuple(self._sources))
        budget = max(self._context.budget, 0)
        if len(whole) <= budget:
            return whole
        order = sorted(range(len(whole)), key=lambda node: (-self._reach[node], node))
        return whole.cut(order[:budget]) if budget else EMPTY

    def _put(self, parent: int, token: int, *, score: float, source: str) -> int | None:
        """The node of this token below a place; None if it may not stand there."""
        cursor = self._cursors[parent]
        following = after(cursor, token)
        if following is None:
            return None
        chance = self._chance(source, cursor.segment, score, self._depths[parent])
        node = self._children.get((parent, token))
        if node is None:
            node = len(self._tokens)
            self._children[parent, token] = node
            self._tokens.append(token)
            self._parents.append(parent)
            self._scores.append(score)
            self._sources.append(source)
            self._chances.append(chance)
            self._cursors[node] = following
            self._depths[node] = self._depths[parent] + 1
        elif chance > self._chances[node]:
            self._scores[node], self._sources[node], self._chances[node] = score, source, chance
        self._reach[node] = self._reach[parent] * self._chances[node]
        return node

    def _path(self, place: int) -> list[int]:
        path: list[int] = []
        while place != ROOT:
            path.append(self._tokens[place])
            place = self._parents[place]
        return path[::-1]


def after(cursor: Cursor, token: int) -> Cursor | None:
    """The place after `token`; None too where the grammar can't go on, which its request will hear from the target."""
    try:
        return cursor.advance(token)
    except GrammarError:
        return None
