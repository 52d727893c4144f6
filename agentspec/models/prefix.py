"""Slots of finished requests, kept so that a prompt that begins like one of them needn't be computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from agentspec.models.base import Slot

_WORTH_COPYING = 16


class PrefixCache:
    """Gives each new sequence the slot that already holds most of its beginning.

    Args:
        open_slot: Makes an empty slot.
        capacity: The most tokens kept in idle slots; the latest slot is kept whatever its size.
    """

    def __init__(self, open_slot: Callable[[], Slot], capacity: int) -> None:
        self._open = open_slot
        self._capacity = capacity
        self._idle: list[Slot] = []

    def take(self, tokens: Sequence[int], running: Iterable[Slot] = ()) -> Slot:
        """A slot for `tokens`: an idle one that holds a prefix of them, a copy of the prefix of another, or a new one.

        An idle slot that also holds much else is copied rather than cut, so that a conversation that it belongs to
        finds it again. Slots of running requests are only ever copied.
        """
        best, shared = None, 0
        for slot in (*self._idle, *running):
            length = shared_prefix(slot.tokens, tokens)
            if length > shared:
                best, shared = slot, length
        if best is None or shared < _WORTH_COPYING:
            return self._open()
        idle = next((place for place, slot in enumerate(self._idle) if slot is best), None)
        if idle is not None and len(best.tokens) - shared <= _WORTH_COPYING:
            return self._idle.pop(idle)
        if idle is not None:
            self._idle.append(self._idle.pop(idle))
        return best.fork(shared)

    def give(self, slot: Slot) -> None:
        """Keep a finished request's slot, and close the ones used longest ago that no longer fit."""
        self._idle.append(slot)
        held = sum(len(slot.tokens) for slot in self._idle)
        while len(self._idle) > 1 and held > self._capacity:
            oldest = self._idle.pop(0)
            held -= len(oldest.tokens)
            oldest.close()

    def close(self) -> None:
        """Free every idle slot."""
        while self._idle:
            self._idle.pop().close()


def shared_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """How many first tokens the two have in common."""
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:  # so it is from round to round
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
