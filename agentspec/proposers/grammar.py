"""Drafts from the grammar: text that has to come next, and the few texts of which one has to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from agentspec.draft import ROOT, Draft
from agentspec.errors import GrammarError
from agentspec.grammar.base import Cursor
from agentspec.grammar.masks import members
from agentspec.grammar.track import TrackedCursor, likely
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.proposers.base import Context
from agentspec.proposers.habits import Habits
from agentspec.verify import Outcome

_FORCED = 0.97
_MOST_TOKENS = 512
_MOST_TEXTS = 8
"""Where more is possible, only what this conversation has shown is guessed."""
_ANYTHING = "q7Z("
"""Where each of these may come, much more may: a mask, which takes long, need not tell."""

Path = tuple[int, ...]


class GrammarProposer:
    """Proposes the tokens that the cursor forces, and where few texts are possible, each of them with what it forces.

    A tool's name, an enumeration, true or false, the next key or the end of the object: the texts are a small tree,
    ordered by how often each stood behind the same tokens in this conversation, or else anywhere in it. They are split
    as the tokenizer would split them, and as they were written here before; the target may do otherwise, so all of it
    is verified like any other guess. Where nothing holds the text but it looks like a tool call, it is drafted on as if
    it were one.

    Args:
        vocabulary: The text of each token.
    """

    name = "grammar"
    sources = (name,)

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._anything = [token for character in _ANYTHING for token in vocabulary.encode(character)[:1]]
        self._habits: dict[int, Habits] = {}

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
        frame = start.forced(context.budget)
        cursor = _walk(start, frame)
        if cursor is None or len(frame) >= context.budget:
            return Draft.chain(frame, self.name, _FORCED)
        allowed = self._allowed(cursor)
        if not allowed:
            return Draft.chain(frame, self.name, _FORCED)
        habits = self._habits.setdefault(context.request_id, Habits())
        habits.extend(context.tokens, len(context.tokens) - context.guessed)
        before = (*context.tokens[-2:], *frame)[-2:]
        paths = self._paths(cursor, allowed, habits.behind(before), room=context.budget - len(frame))
        return Draft.chain(frame, self.name, _FORCED).then(self._tree(paths, habits, before))

    def _allowed(self, cursor: Cursor) -> list[int]:
        """The tokens that may follow; none where they are many, or nothing holds the text."""
        held = cursor.inner if isinstance(cursor, TrackedCursor) else cursor
        try:
            mask = None if all(held.advance(token) for token in self._anything) else held.mask()
        except GrammarError:  # the request hears of it from the target
            return []
        return [] if mask is None else members(mask, _MOST_TOKENS)

    def _paths(self, cursor: Cursor, allowed: Sequence[int], seen: Mapping[int, int], *, room: int) -> list[Path]:
        """The texts that may come, each split into at most `room` tokens."""
        ends, spelled = self._vocabulary.eos, self._vocabulary.spelled
        longest = _longest({token: spelled(token) for token in allowed if token not in ends})
        paths = [self._split(cursor, token, room) for token in longest] if len(longest) <= _MOST_TEXTS else []
        known = {path[0] for path in paths}
        again = sorted((token for token in seen if token in set(allowed) - known), key=lambda token: -seen[token])
        return list(dict.fromkeys([*paths, *(_with_forced(cursor, token, room) for token in again[:_MOST_TEXTS])]))

    def _split(self, cursor: Cursor, token: int, room: int) -> Path:
        """The text that begins with `token`, up to the next choice, as the tokenizer would split it."""
        path = _with_forced(cursor, token, room)
        texts = self._vocabulary.tokens
        if not self._vocabulary.canonical or not all(texts[each] for each in path):
            return path
        try:
            split = tuple(self._vocabulary.encode(b"".join(texts[each] for each in path).decode()))
        except UnicodeDecodeError:
            return path
        return split[:room] if _walk(cursor, split) is not None else path

    def _tree(self, paths: Sequence[Path], habits: Habits, before: Path) -> Draft:
        """The paths, each place's likeliest token first."""
        tokens: list[int] = []
        parents: list[int] = []
        scores: list[float] = []

        def grow(parent: int, tails: Sequence[Path], before: Path) -> None:
            groups: dict[int, list[Path]] = {}
            for tail in tails:
                if tail:
                    groups.setdefault(tail[0], []).append(tail[1:])
            shares = habits.shares(before, list(groups)) if len(groups) > 1 else dict.fromkeys(groups, _FORCED)
            for token in sorted(groups, key=lambda each: -shares[each]):
                tokens.append(token)
                parents.append(parent)
                scores.append(shares[token])
                grow(len(tokens) - 1, groups[token], (*before, token)[-2:])

        grow(ROOT, paths, before)
        return Draft(tuple(tokens), tuple(parents), tuple(scores), (self.name,) * len(tokens))


def _walk(cursor: Cursor, tokens: Sequence[int]) -> Cursor | None:
    following: Cursor | None = cursor
    for token in tokens:
        following = following.advance(token) if following is not None else None
    return following


def _with_forced(cursor: Cursor, token: int, room: int) -> Path:
    following = cursor.advance(token)
    return (token, *(following.forced(room - 1) if following is not None and room > 1 else ()))


def _longest(texts: Mapping[int, bytes]) -> list[int]:
    """The tokens that no other one begins with: the tokenizer would rather take the longer one."""
    ordered = sorted(set(texts.values()))
    begin = {text for text, following in pairwise(ordered) if following.startswith(text)}
    return [token for token, text in texts.items() if text not in begin]
