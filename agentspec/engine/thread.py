"""The one thread of this process that loads and runs models."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar

_T = TypeVar("_T")


class Runner(Protocol):
    """Something that is advanced round by round."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do. Read in the model thread."""

    def advance(self) -> None:
        """Run one round; must not raise."""


class ModelThread:
    """Runs whatever touches tensors, in one thread for all engines of a process.

    On a CPU this is a matter of speed too. OpenMP keeps a team of workers for every thread that ever started parallel
    work; once there are more workers than cores, none of them waits awake for the next piece, and a forward of a 0.5B
    model takes 55 ms instead of 34 (measured on two cores, GNU OpenMP). So weights are read and packed here as well.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: in a forked process there is no thread but the one that forked, and a lock may be held."""
        self._inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._runners: list[Runner] = []

    @property
    def started(self) -> bool:
        """Whether the thread was ever needed."""
        return self._thread is not None

    def post(self, message: Callable[[], None]) -> None:
        """Have a message read between two rounds; it must not raise. Safe in any thread.

        Once the thread runs no lock is taken, so that this is safe during garbage collection too, which may come while
        any lock is held.
        """
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    thread = threading.Thread(target=self._run, name="agentspec-models", daemon=True)
                    thread.start()
                    self._thread = thread
        self._inbox.put(message)

    def call(self, work: Callable[[], _T]) -> _T:
        """Run `work` between two rounds and wait for what it gives or raises. Safe in any thread."""
        if threading.current_thread() is self._thread:
            return work()
        done: Future[_T] = Future()

        def run() -> None:
            try:
                done.set_result(work())
            except BaseException as error:  # it belongs to the one who waits
                done.set_exception(error)

        self.post(run)
        return done.result()

    def attach(self, runner: Runner) -> None:
        """Advance a runner from now on. In the model thread only."""
        if runner not in self._runners:
            self._runners.append(runner)

    def detach(self, runner: Runner) -> None:
        """Advance it no more. In the model thread only."""
        if runner in self._runners:
            self._runners.remove(runner)

    def _run(self) -> None:
        while True:
            self._read()
            for runner in list(self._runners):
                if not runner.idle:
                    runner.advance()

    def _read(self) -> None:
        """Take every message in, waiting for one while there is nothing to do."""
        while True:
            idle = all(runner.idle for runner in self._runners)
            try:
                self._inbox.get(block=idle)()
            except Empty:
                return


MODEL_THREAD = ModelThread()
"""The thread of this process."""

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=MODEL_THREAD.forget)


@atexit.register
def _finish() -> None:
    """A thread that is inside torch when Python is taken down would abort the process: let it end what it is at."""
    if MODEL_THREAD.started:
        MODEL_THREAD.call(lambda: None)
