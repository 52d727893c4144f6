"""A draft from places in known text: what stood there is followed for as long as it is likely to come again."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from agentspec.draft import EMPTY, ROOT, Draft
from agentspec.grammar.base import Cursor
from agentspec.proposers.base import Context
from agentspec.proposers.growth import after
from agentspec.proposers.index import LONGEST

_LEAST = 0.02
_NEGLIGIBLE = 0.002
_KNOWN = tuple(1 - 0.95 / (1 + 0.6 * length) for length in range(LONGEST + 1))
"""The chance that what comes is nothing new, by the length of the longest match (as measured over recorded answers)."""


class Place(NamedTuple):
    """Where the text may go on as known text did.

    Attributes:
        weight: How much it counts beside other places, above 0.
        length: How many tokens before it agree with the last tokens.
        tokens: The known text; a negative token is a border, behind which nothing is followed.
        at: Index of the token that comes next. Text without a border at its end goes on as the draft does.
        source: Credited for what is taken from here.
    """

    weight: float
    length: int
    tokens: list[int]
    at: int
    source: str


class _End(NamedTuple):
    """Where the draft may go on: its root, or a node of it."""

    node: int
    path: list[int]
    cursor: Cursor
    reach: float


class _Branch(NamedTuple):
    """A token that one or more places name next: a node of the draft, if it is among the likeliest."""

    token: int
    score: float
    behind: _End
    places: list[Place]


def follow(context: Context, places: Sequence[Place]) -> Draft:
    """The tree of what followed at the places, the likeliest nodes first, as far as they are legal.

    Of the places that agree with a node's path, those that name the same token next vote for it together: its chance
    is their share of the weight, times the chance that what comes is nothing new, which a longer match makes likelier.
    After SuffixDecoding (arXiv 2411.04975), which takes the shares from counts in a suffix tree.
    """
    guess = list(context.tokens[len(context.tokens) - context.guessed :])
    nodes: list[_Branch] = []
    heap: list[tuple[float, int, _Branch]] = []
    made = 0
    bar = _NEGLIGIBLE * max((place.weight for place in places), default=0.0)
    worth = [place for place in places if place.weight >= bar]
    branches = _branches(worth, _End(ROOT, guess, context.cursor, context.reach), len(guess))
    while len(nodes) < context.budget:
        for branch in branches:
            heappush(heap, (-branch.behind.reach * branch.score, made, branch))
            made += 1
        if not heap:
            break
        likeliest, _, node = heappop(heap)
        following = after(node.behind.cursor, node.token)
        branches = []
        if following is not None:
            end = _End(len(nodes), [*node.behind.path, node.token], following, -likeliest)
            branches = _branches(node.places, end, len(guess))
            nodes.append(node)
    return _draft(nodes) if nodes else EMPTY


def _branches(places: list[Place], end: _End, guessed: int) -> list[_Branch]:
    """What the places name next behind a path, whose first tokens were guessed before, where that is likely enough."""
    path, depth, longest, total = end.path, len(end.path) - guessed, 0, 0.0
    votes: dict[int, list[Place]] = {}
    weights: dict[int, float] = {}
    for place in places:
        weight, length, tokens, at, _ = place
        at += depth - len(tokens)
        token = tokens[at] if at < 0 else path[at]
        if token < 0:
            continue
        total += weight
        if length > longest:
            longest = length
        if token in votes:
            votes[token].append(place)
            weights[token] += weight
        else:
            votes[token], weights[token] = [place], weight
    known = _KNOWN[min(longest + depth, LONGEST)]
    return [
        _Branch(token, score, end, named)
        for token, named in votes.items()
        if end.reach * (score := known * weights[token] / total) >= _LEAST
    ]


def _draft(nodes: Sequence[_Branch]) -> Draft:
    best = [max(node.places, key=_weight).source for node in nodes]
    return Draft(
        tuple(node.token for node in nodes),
        tuple(node.behind.node for node in nodes),
        tuple(node.score for node in nodes),
        tuple(best),
    )


def _weight(place: Place) -> float:
    return place.weight
