"""A draft: the tree of tokens that a proposer guesses will come next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ROOT = -1
"""The parent of first-level nodes: the last token that is already known."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Guessed tokens as a tree, parents before children, siblings distinct.

    Attributes:
        tokens: Token id of each node.
        parents: Index of each node's parent, `ROOT` or an earlier node.
        scores: P(node accepted | its parent accepted) in 0..1, as the source believes.
        sources: Name of the proposer that guessed each node.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.tokens) == len(self.parents) == len(self.scores) == len(self.sources):
            raise ValueError("a draft's tokens, parents, scores and sources differ in length")
        if any(not ROOT <= parent < node for node, parent in enumerate(self.parents)):
            raise ValueError(f"a draft's parents must come before their children: {self.parents}")
        if len(set(zip(self.parents, self.tokens, strict=True))) != len(self.tokens):
            raise ValueError("siblings of a draft must hold distinct tokens")

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def chain(cls, tokens: Sequence[int], source: str, scores: Sequence[float] | float = 0.5) -> Draft:
        """A draft without branches, all from one source."""
        size = len(tokens)
        each = (float(scores),) * size if isinstance(scores, int | float) else tuple(scores)
        return cls(tuple(tokens), tuple(range(ROOT, size - 1)), each, (source,) * size)

    @property
    def is_chain(self) -> bool:
        """Whether every node follows the one before it."""
        return self.parents == tuple(range(ROOT, len(self) - 1))

    def child(self, node: int, token: int) -> int | None:
        """The child of `node` (or of `ROOT`) that guesses `token`, if there is one."""
        for index in range(node + 1, len(self)):
            if self.parents[index] == node and self.tokens[index] == token:
                return index
        return None

    def path(self, node: int) -> tuple[int, ...]:
        """The nodes from the first level down to `node`, both ends included; empty for `ROOT`."""
        nodes: list[int] = []
        while node != ROOT:
            nodes.append(node)
            node = self.parents[node]
        return tuple(reversed(nodes))

    def depths(self) -> tuple[int, ...]:
        """Each node's depth; the first level is 0."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(0 if parent == ROOT else depths[parent] + 1)
        return tuple(depths)

    def reach(self, chances: Sequence[float] | None = None) -> tuple[float, ...]:
        """Each node's chance of being accepted at all: the product of chances on its path, by default the scores."""
        reach: list[float] = []
        for parent, chance in zip(self.parents, self.scores if chances is None else chances, strict=True):
            reach.append(chance if parent == ROOT else reach[parent] * chance)
        return tuple(reach)

    def cut(self, keep: Iterable[int]) -> Draft:
        """The draft without the nodes not in `keep`, nor what hangs below those."""
        wanted = set(keep)
        place: dict[int, int] = {ROOT: ROOT}
        for node, parent in enumerate(self.parents):
            if node in wanted and parent in place:
                place[node] = len(place) - 1
        kept = [node for node in place if node != ROOT]
        return Draft(
            tuple(self.tokens[node] for node in kept),
            tuple(place[self.parents[node]] for node in kept),
            tuple(self.scores[node] for node in kept),
            tuple(self.sources[node] for node in kept),
        )

    def then(self, other: Draft) -> Draft:
        """This chain with `other` hung below its last node."""
        base = len(self)
        parents = tuple(parent + base for parent in other.parents)
        return Draft(
            self.tokens + other.tokens,
            self.parents + parents,
            self.scores + other.scores,
            self.sources + other.sources,
        )


EMPTY = Draft()
"""No guess at all: the step then is plain decoding."""
