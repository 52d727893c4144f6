"""The one rule by which a draft is accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentspec.draft import ROOT, Draft


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a round yields.

    Attributes:
        path: The accepted nodes, from the first level down.
        bonus: The target's own token after the last accepted one.
    """

    path: tuple[int, ...]
    bonus: int


def verify(draft: Draft, picks: Sequence[int]) -> Outcome:
    """Keep the longest path on which the draft guessed what the target picked.

    The target has picked a token at every place with its own sampler, so the result is what it would have written
    alone; the draft only decides how much of it is known after one pass. Holds for greedy and sampled decoding, for
    chains and trees (arXiv 2211.17192 with shared noise in the place of rejection, arXiv 2408.07978).

    Args:
        draft: What was guessed.
        picks: `len(draft) + 1` tokens; the first follows the last known token, `picks[i + 1]` follows node `i`.
    """
    node, path = ROOT, []
    while (following := draft.child(node, picks[node + 1])) is not None:
        node = following
        path.append(node)
    return Outcome(tuple(path), picks[node + 1])
