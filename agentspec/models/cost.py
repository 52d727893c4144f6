"""What a forward costs by its number of rows of tokens: the figure that decides how much a draft may hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter

from agentspec.draft import Draft
from agentspec.models.base import Row, Slot, TargetModel

Step = Callable[[int], None]
"""Runs one forward of so many tokens behind a context that is in the cache already, and leaves that as it was."""

ROWS = (1, 2, 4, 8, 16)


def measure_cost(
    target: TargetModel, rows: Sequence[int] = ROWS, context: int = 512, repeats: int = 7
) -> dict[int, float]:
    """Seconds of one forward, median, by the tokens it verifies: one pending token and a chain of guesses.

    Args:
        target: What to measure; must have `context + max(rows)` tokens of context.
        rows: Tokens in the forward, each at least 1.
        context: Committed tokens before them.
        repeats: Turns after a first one that isn't counted.
    """
    took = take_turns({"": target_step(target, context)}, rows, repeats)[""]
    return {width: median(seconds) for width, seconds in took.items()}


def take_turns(
    steps: Mapping[str, Step], rows: Sequence[int] = ROWS, repeats: int = 7
) -> dict[str, dict[int, list[float]]]:
    """Seconds of each forward, by whose it is and by its tokens.

    All of them take turns, so that whatever else the machine does falls on all of them.

    Args:
        steps: By name.
        rows: Tokens in the forward, each at least 1.
        repeats: Turns after a first one that isn't counted.
    """
    seconds: dict[str, dict[int, list[float]]] = {name: {width: [] for width in rows} for name in steps}
    for turn in range(repeats + 1):
        for width in rows:
            for name, step in steps.items():
                start = perf_counter()
                step(width)
                if turn:
                    seconds[name][width].append(perf_counter() - start)
    return seconds


def sample_forwards(
    target: TargetModel, kinds: Sequence[tuple[int, int]], *, context: int, turns: int, most_seconds: float
) -> dict[tuple[int, int], float]:
    """Seconds of one forward, the shortest, by its tokens and its rows, as far as the time goes.

    All kinds take turns, so that whatever else the machine does falls on all of them; it only ever adds time, and a few
    turns are too few for a median to leave that out.

    Args:
        target: What to measure; must have `context + most tokens of a row` of context.
        kinds: Tokens and rows of each kind, the most important first; tokens a multiple of rows.
        context: Committed tokens before each row.
        turns: At least 2.
        most_seconds: No forward is begun after this time.

    Returns:
        The kinds that were run twice, for once is no measure; the first kind in any case.
    """
    end = perf_counter() + most_seconds
    slots = [_slot_with(target, context)]
    slots += [slots[0].fork() for _ in range(max(rows for _, rows in kinds) - 1)]
    took: dict[tuple[int, int], list[float]] = {kind: [] for kind in kinds}
    for width, rows in list(kinds) * turns:
        if perf_counter() > end and took[kinds[0]]:
            break
        draft = Draft.chain(filler(target.vocab_size, width // rows - 1), "cost")
        start = perf_counter()
        target.forward([Row(slot, (1,), draft) for slot in slots[:rows]]).logits[0, 0].item()
        took[width, rows].append(perf_counter() - start)
    for slot in slots:
        slot.close()
    return {kind: min(each) for kind, each in took.items() if len(each) > 1 or (each and kind == kinds[0])}


def filler(vocab_size: int, length: int) -> list[int]:
    """So many tokens that mean nothing."""
    return [1 + place % (vocab_size - 1) for place in range(length)]


def target_step(target: TargetModel, context: int) -> Step:
    """A target's forward behind `context` committed tokens."""
    slot = _slot_with(target, context)

    def step(width: int) -> None:
        row = Row(slot, (1,), Draft.chain(filler(target.vocab_size, width - 1), "cost"))
        target.forward([row]).logits[0, 0].item()

    return step


def _slot_with(target: TargetModel, context: int) -> Slot:
    slot = target.open()
    prompt = Row(slot, filler(target.vocab_size, context))
    target.forward([prompt])
    slot.commit(prompt, ())
    return slot
