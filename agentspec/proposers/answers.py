"""Answers of finished requests, by caller: the second store that drafts are looked up in."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from agentspec.proposers.index import SuffixIndex
from agentspec.proposers.respelled import BORDER


class AnswerStore:
    """Indexes of the latest answers, one for each caller: what one was answered never shows in another's timing.

    A caller's answers fill a young index; when that holds its share it becomes the old one, and the old one before it
    is dropped. So the oldest answers go first, and dropping them costs nothing.

    Args:
        capacity: The most tokens kept of one caller, at least 2; callers whose last answer is the longest ago go
            when all of them together hold more than four times that.
        shared: Whether all callers are one.
        keep: Told of each answer that is added, with its caller, so that it outlives the process.
    """

    def __init__(
        self,
        capacity: int = 65_536,
        *,
        shared: bool = False,
        keep: Callable[[str, Sequence[int]], None] = lambda caller, answer: None,
    ) -> None:
        self._capacity = capacity
        self._shared = shared
        self._keep = keep
        self._callers: OrderedDict[str, list[SuffixIndex]] = OrderedDict()

    def __len__(self) -> int:
        return sum(len(index) for indexes in self._callers.values() for index in indexes)

    def indexes(self, caller: str) -> Sequence[SuffixIndex]:
        """What to look in for this caller, the latest answers first; at most two."""
        return self._callers.get(self._name(caller), ())

    def add(self, caller: str, answer: Sequence[int]) -> None:
        """Take up a finished answer."""
        if answer:
            self.recall(caller, answer)
            self._keep(self._name(caller), answer)

    def recall(self, caller: str, answer: Sequence[int]) -> None:
        """Take up an answer that is kept already."""
        name, half = self._name(caller), self._capacity // 2
        indexes = self._callers.setdefault(name, [SuffixIndex()])
        self._callers.move_to_end(name)
        if len(indexes[0]) and len(indexes[0]) + len(answer) >= half:
            del indexes[1:]
            indexes.insert(0, SuffixIndex())
        indexes[0].extend([*answer[-half + 1 :], BORDER] if half > 1 else [BORDER])
        while len(self._callers) > 1 and len(self) > 4 * self._capacity:
            self._callers.popitem(last=False)

    def _name(self, caller: str) -> str:
        return "" if self._shared else caller
