"""Trying again, now and then, what was given up: without it nobody would hear that it works by now."""

from __future__ import annotations

from collections.abc import Hashable

_LITTLE = 0.03
"""Tokens that a try may cost before it is put off."""


class Probes:
    """When to try again what was given up: ever more rarely, and sooner after a success.

    Args:
        growth: By how many times the wait grows with each try.
        rarest: The longest wait, in times that it was given up.
    """

    def __init__(self, *, growth: int, rarest: int) -> None:
        self._growth = growth
        self._rarest = rarest
        self._waits: dict[Hashable, int] = {}
        self._declined: dict[Hashable, float] = {}

    def due(self, key: Hashable, *, loss: float = 0.0) -> bool:
        """Count one more time that it is given up; True if it is to be tried instead.

        Args:
            key: What is given up.
            loss: Tokens that the try is thought to cost; what costs more than a little is tried more rarely still.
        """
        self._declined[key] = self._declined.get(key, 0.0) + min(_LITTLE / max(loss, _LITTLE), 1.0)
        wait = self._waits.setdefault(key, 4)
        if self._declined[key] < wait:
            return False
        self._declined[key] = 0
        self._waits[key] = min(self._growth * wait, self._rarest)
        return True

    def succeeded(self, key: Hashable) -> None:
        """Hear that it was right."""
        if key in self._waits:
            self._waits[key] = max(self._waits[key] // self._growth**3, 2)
