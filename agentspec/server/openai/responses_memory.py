"""The responses that later requests may go on from."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentspec.server.problems import Problem

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Remembered:
    """A response that is over.

    Attributes:
        response: As it was answered.
        items: The conversation up to its end, its own output included; `instructions` are no part of it.
    """

    response: dict[str, Any]
    items: tuple[Item, ...]


class ResponsesMemory:
    """Keeps the latest responses in memory, for as long as the server runs; which of them are used counts as late.

    Args:
        most: How many.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[str, Remembered] = OrderedDict()

    def keep(self, response: dict[str, Any], items: Sequence[Item]) -> None:
        """Remember a response, and forget the one that was not used for longest if there are too many."""
        self._kept[response["id"]] = Remembered(response, tuple(items))
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def find(self, id: str, *, param: str, code: str | None = None) -> Remembered:
        """The response of that id.

        Raises:
            Problem: There is none; `param` is to blame.
        """
        if id not in self._kept:
            raise Problem(404, f"no response is remembered as {id!r}", param=param, code=code)
        self._kept.move_to_end(id)
        return self._kept[id]

    def forget(self, id: str, *, param: str) -> None:
        """Remember it no longer.

        Raises:
            Problem: There is none; `param` is to blame.
        """
        self.find(id, param=param)
        del self._kept[id]

    def resolved(self, items: Sequence[object]) -> list[object]:
        """Items with those in them that are only named by their id, `item_reference`s, as they were answered.

        Raises:
            Problem: An item is named that is not remembered.
        """
        return [self._resolved(item, f"input[{index}]") for index, item in enumerate(items)]

    def _resolved(self, item: object, place: str) -> object:
        if not isinstance(item, Mapping) or item.get("type") != "item_reference":
            return item
        for kept in reversed(self._kept.values()):
            for found in kept.response["output"]:
                if found["id"] == item.get("id"):
                    return found
        raise Problem(404, f"{place}: no item is remembered as {item.get('id')!r}", param=f"{place}.id")
