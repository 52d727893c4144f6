"""An engine core in the model thread; everyone else sends it messages."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable
from weakref import WeakSet

from agentspec.engine.core import EngineCore
from agentspec.engine.request import Order
from agentspec.engine.thread import MODEL_THREAD
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

    def check(self) -> None:
        """Refuse to be waited for where nothing will come.

        Raises:
            EngineError: This process was forked after the order was submitted.
        """
        self._worker.check_process()

    def cancel(self) -> None:
        """End the request within a round; harmless when it is over. Safe in any thread, and in a finalizer."""
        self._worker.cancel(self)


class EngineWorker:
    """Runs an engine core in the model thread, beside those of other engines.

    Args:
        core: Not to be touched by anyone else from here on, but for `core.check`.
    """

    def __init__(self, core: EngineCore) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._closed = False
        self._process = os.getpid()

    @property
    def idle(self) -> bool:
        """Whether no request waits or runs."""
        return self._core.idle

    def check_process(self) -> None:
        """Refuse to work in another process than the one that the engine was loaded in.

        Raises:
            EngineError: This process was forked from it, and has no thread that would run the model.
        """
        if os.getpid() != self._process:
            raise EngineError("the engine belongs to the process before the fork: load another one")

    def submit(self, order: Order) -> Ticket:
        """Hand over an order; its listener hears the rest. Safe in any thread.

        Raises:
            EngineError: The engine was closed, or this process was forked since it was loaded.
            PromptError, ConfigError: The order can't be run; see `EngineCore.check`.
        """
        self.check_process()
        self._core.check(order)
        ticket = Ticket(self)

        def add() -> None:
            MODEL_THREAD.attach(self)
            ticket.request_id = self._core.add(order)

        self._post(add)
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """End a ticket's request within a round."""

        def cancel() -> None:
            if ticket.request_id is not None:
                self._core.cancel(ticket.request_id)

        # Without the lock: garbage collection may come here while this very thread holds it.
        if not self._closed and os.getpid() == self._process:
            MODEL_THREAD.post(lambda: self._guard(cancel))

    def close(self) -> None:
        """End every request with an error and free the K/V columns. Harmless twice, and in a forked process."""
        if os.getpid() != self._process:
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
        MODEL_THREAD.call(self._end)

    def advance(self) -> None:
        """Run one round; whatever a model, proposer or listener throws ends the requests, not the thread."""
        self._guard(self._core.step)

    def _post(self, message: Callable[[], None]) -> None:
        with self._lock:
            if self._closed:
                raise EngineError("the engine was closed: load another one")
            _RUNNING.add(self)
            MODEL_THREAD.post(lambda: self._guard(message))

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except AgentSpecError as error:
            self._core.fail(error)
        except BaseException as error:
            _LOG.exception("a round of the engine failed")
            failure = EngineError(f"a round of the engine failed: {error!r}")
            failure.__cause__ = error
            self._core.fail(failure)

    def _end(self) -> None:
        MODEL_THREAD.detach(self)
        self._core.close()
