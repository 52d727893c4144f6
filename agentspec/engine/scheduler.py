"""Who runs: newcomers wait in order until there is room in the batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import count

from agentspec.engine.request import Order, Request


class Scheduler:
    """Owns the queue and the running batch, and nothing else.

    Args:
        max_running: The most requests in one batch.
        start: Makes a request of an id and an order: finds it a slot. None: it could not, and has told the caller.
    """

    def __init__(self, max_running: int, start: Callable[[int, Order], Request | None]) -> None:
        self._max_running = max_running
        self._start = start
        self._waiting: deque[tuple[int, Order]] = deque()
        self._ids = count()
        self.running: list[Request] = []

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self._waiting and not self.running

    def add(self, order: Order) -> int:
        """Queue an order; its request id."""
        request_id = next(self._ids)
        self._waiting.append((request_id, order))
        return request_id

    def admit(self) -> list[Request]:
        """Let waiting orders in, first come first served, and return every running request.

        A further answer to a prompt waits until the first one has computed it, so as to start from a copy.
        """
        while self._waiting and len(self.running) < self._max_running:
            request_id, order = self._waiting[0]
            if order.branch and any(not request.written for request in self.running):
                break
            self._waiting.popleft()
            if request := self._start(request_id, order):
                self.running.append(request)
        return self.running

    def cancel(self, request_id: int) -> Order | None:
        """Drop a waiting order and return it, or mark a running request: it ends before its next round."""
        for place, (waiting_id, order) in enumerate(self._waiting):
            if waiting_id == request_id:
                del self._waiting[place]
                return order
        for request in self.running:
            if request.id == request_id:
                request.cancelled = True
        return None

    def drain(self) -> list[Order]:
        """Empty the queue; what was in it."""
        orders = [order for _, order in self._waiting]
        self._waiting.clear()
        return orders

    def retire(self) -> list[Request]:
        """Take the finished requests out of the batch."""
        done = [request for request in self.running if request.finish_reason]
        self.running = [request for request in self.running if not request.finish_reason]
        return done
