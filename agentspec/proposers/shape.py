"""Drafts of what stands between two values of JSON that nothing enforces: the punctuation, white space and next key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from agentspec.draft import EMPTY, ROOT, Draft
from agentspec.grammar.track import TrackedCursor, is_held
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.proposers.base import Context
from agentspec.proposers.json_frames import FrameReader, Gap
from agentspec.verify import Outcome

_MOST_FRAMES = 3
_UNSEEN = 0.3
"""Stands for whatever else may follow a value, beside the frames that were counted."""
_LEAST = 0.1
_SURE = 0.99
_PROMPT_TOKENS = 16_384
"""Of a longer prompt, the last ones are read."""


class ShapeProposer:
    """Proposes what followed the same key earlier in the conversation, though the value differs this time.

    Lists of objects, and tool calls written as free JSON, repeat their frames: the text from the end of one value to
    the beginning of the next. A frame is proposed where a value has ended, and where it may end by how long the key's
    values were, in the conversation's own tokens, so that white space is as it was written before. What this answer
    wrote is preferred to what the prompt shows. Where a mask holds the text it stays silent.

    Args:
        vocabulary: The text of each token.
    """

    name = "shape"
    sources = (name,)

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._readers: dict[int, FrameReader] = {}

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        """A tree for each context; empty outside free JSON, and where the key was never seen."""
        return [self._propose(context) if _writes_json(context) else EMPTY for context in contexts]

    def learn(self, context: Context, draft: Draft, outcome: Outcome) -> None:
        """Nothing to learn: frames are read off the tokens."""

    def finish(self, request_id: int, answer: Sequence[int]) -> None:
        """Forget the conversation's frames."""
        self._readers.pop(request_id, None)

    def _propose(self, context: Context) -> Draft:
        reader = self._readers.get(context.request_id)
        if reader is None:
            start = max(context.prompt_length - _PROMPT_TOKENS, 0)
            reader = FrameReader(self._vocabulary, start=start, prompt_length=context.prompt_length)
            self._readers[context.request_id] = reader
        reader.read(context.tokens, len(context.tokens) - context.guessed)
        gap = reader.gap(context.tokens[len(context.tokens) - context.guessed :])
        if gap is None or gap.ended < _LEAST:
            return EMPTY
        paths = self._paths(gap, context.budget)
        return _tree(paths, gap.ended) if paths else EMPTY

    def _paths(self, gap: Gap, budget: int) -> dict[tuple[int, ...], float]:
        """What is left of each likely frame, and its chance."""
        size = len(gap.written)
        fitting = {frame: count for frame, count in gap.frames.items() if frame.text.startswith(gap.written)}
        total = sum(fitting.values()) + _UNSEEN
        paths: Counter[tuple[int, ...]] = Counter()
        for frame in sorted(fitting, key=lambda each: -fitting[each])[:_MOST_FRAMES]:
            paths[frame.behind(size, self._vocabulary)[:budget]] += fitting[frame]
        return {path: count / total for path, count in paths.items() if path}


def _writes_json(context: Context) -> bool:
    """Whether JSON is being written that nothing holds to a shape."""
    cursor = context.cursor
    if not isinstance(cursor, TrackedCursor) or cursor.place.mode not in ("json", "call"):
        return False
    return bool(cursor.place.stack) and not is_held(cursor.inner)


def _tree(paths: Mapping[tuple[int, ...], float], ended: float) -> Draft:
    """The paths with their chances, shared beginnings once; `ended`: the chance that the value is over."""
    nodes: dict[tuple[int, int], int] = {}
    chances: list[float] = []
    for path, chance in paths.items():
        parent = ROOT
        for token in path:
            node = nodes.setdefault((parent, token), len(chances))
            if node == len(chances):
                chances.append(chance)
            else:
                chances[node] += chance
            parent = node
    if ended * max(chance for (parent, _), chance in zip(nodes, chances, strict=True) if parent == ROOT) < _LEAST:
        return EMPTY
    scores = [
        ended * chance if parent == ROOT else min(chance / chances[parent], _SURE)
        for (parent, _), chance in zip(nodes, chances, strict=True)
    ]
    parents, tokens = tuple(parent for parent, _ in nodes), tuple(token for _, token in nodes)
    return Draft(tokens, parents, tuple(scores), (ShapeProposer.name,) * len(tokens))
