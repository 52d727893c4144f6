"""The thread that owns the engine core and all its tensors; everyone else sends it messages."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from weakref import WeakSet

from agentspec.engine.core import EngineCore
from agentspec.engine.request import Order
from agentspec.errors import AgentSpecError, EngineError

_LOG = logging.getLogger(__name__)


_RUNNING: WeakSet[EngineWorker] = WeakSet()


@atexit.register
def _close_all() -> None:
    """A thread that is inside torch when Python is taken down would abort the process."""
    for worker in list(_RUNNING):
        worker.close()


class Ticket:
    """A submitted order, for whoever may want to cancel it."""

    def __init__(self, worker: EngineWorker) -> None:
        self._worker = worker
        self.request_id: int | None = None
        """Known once the engine has queued the order."""

    def cancel(self) -> None:
        """End the request within a round; harmless when it is over. Safe in any thread."""
        self._worker.cancel(self)


class EngineWorker:
    """Runs an engine core in a thread of its own, started with the first order.

    Args:
        core: Not to be touched by anyone else from here on, but for `core.check`.
    """

    def __init__(self, core: EngineCore) -> None:
        self._core = core
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, order: Order) -> Ticket:
        """Hand over an order; its listener hears the rest. Safe in any thread.

        Raises:
            EngineError: The engine was closed.
            PromptError, ConfigError: The order can't be run; see `EngineCore.check`.
        """
        self._core.check(order)
        ticket = Ticket(self)

        def add() -> None:
            ticket.request_id = self._core.add(order)

        self._post(add)
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """End a ticket's request within a round."""

        def cancel() -> None:
            if ticket.request_id is not None:
                self._core.cancel(ticket.request_id)

        if not self._closed:
            self._post(cancel)

    def close(self) -> None:
        """End every request with an error, stop the thread and free the K/V columns. Closing twice is harmless."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
        if thread is None:
            self._core.close()
            return
        self._inbox.put(None)
        if thread is not threading.current_thread():
            thread.join()

    def _post(self, message: Callable[[], None]) -> None:
        with self._lock:
            if self._closed:
                raise EngineError("the engine was closed: load another one")
            if self._thread is None:
                _RUNNING.add(self)
                self._thread = threading.Thread(target=self._run, name="agentspec-engine", daemon=True)
                self._thread.start()
            self._inbox.put(message)

    def _run(self) -> None:
        going_on = True
        while going_on:
            try:
                going_on = self._read()
                if going_on and not self._core.idle:
                    self._core.step()
            except AgentSpecError as error:
                self._core.fail(error)
            except BaseException as error:  # the thread must outlive whatever a model, proposer or listener throws
                _LOG.exception("a round of the engine failed")
                failure = EngineError(f"a round of the engine failed: {error!r}")
                failure.__cause__ = error
                self._core.fail(failure)
        self._core.close()

    def _read(self) -> bool:
        """Take every message in, waiting for one if there is nothing to do; False: stop."""
        while True:
            try:
                message = self._inbox.get(block=self._core.idle)
            except Empty:
                return True
            if message is None:
                return False
            message()
