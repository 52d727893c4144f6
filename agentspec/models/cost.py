"""What a forward costs by its number of rows of tokens: the figure that decides how much a draft may hold."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from time import perf_counter

from agentspec.draft import Draft
from agentspec.models.base import Row, TargetModel


def measure_cost(
    target: TargetModel, rows: Sequence[int] = (1, 2, 4, 8, 16), context: int = 512, repeats: int = 7
) -> dict[int, float]:
    """Seconds of one forward, median, by the tokens it verifies: one pending token and a chain of guesses.

    The widths take turns, so that whatever else the machine does falls on all of them.

    Args:
        target: What to measure; must have `context + max(rows)` tokens of context.
        rows: Tokens in the forward, each at least 1.
        context: Committed tokens before them.
        repeats: Turns after a first one that isn't counted.
    """
    slot = target.open()
    committed = [1 + place % (target.vocab_size - 1) for place in range(context)]
    prompt = Row(slot, committed)
    target.forward([prompt])
    slot.commit(prompt, ())
    seconds: dict[int, list[float]] = {width: [] for width in rows}
    for turn in range(repeats + 1):
        for width in rows:
            guesses = [place % target.vocab_size for place in range(width - 1)]
            row = Row(slot, (1,), Draft.chain(guesses, "cost"))
            start = perf_counter()
            target.forward([row]).logits[0, 0].item()
            if turn:
                seconds[width].append(perf_counter() - start)
    slot.close()
    return {width: median(measured) for width, measured in seconds.items()}
