import threading
from collections.abc import Iterator
from queue import SimpleQueue

import pytest

from agentspec.config import EngineConfig, SamplingParams
from agentspec.engine.core import EngineCore
from agentspec.engine.request import Event, Order
from agentspec.engine.thread import MODEL_THREAD
from agentspec.engine.worker import EngineWorker
from agentspec.errors import EngineError
from agentspec.models.base import Output, Row
from agentspec.proposers.base import Off
from agentspec.testing import FixedController, ScriptedTarget


class Gated(ScriptedTarget):
    """Waits before each forward until it is let through."""

    def __init__(self) -> None:
        super().__init__(lambda tokens: {len(tokens) % 8: 5.0}, vocab_size=8)
        self.gate = threading.Semaphore(0)
        self.broken = False

    def forward(self, rows: list[Row]) -> Output:  # type: ignore[override]
        self.gate.acquire()
        if self.broken:
            raise RuntimeError("device lost")
        return super().forward(rows)


@pytest.fixture
def target() -> Gated:
    return Gated()


@pytest.fixture
def worker(target: Gated) -> Iterator[EngineWorker]:
    worker = EngineWorker(EngineCore(target, Off(), controller=FixedController(0), config=EngineConfig()))
    yield worker
    target.gate.release(1000)
    worker.close()


def asked(events: SimpleQueue[Event], max_tokens: int) -> Order:
    return Order(prompt=[1], params=SamplingParams(seed=0, max_tokens=max_tokens), listener=events.put)


def test_a_request_that_comes_later_joins_the_running_batch(target: Gated, worker: EngineWorker) -> None:
    first, second = SimpleQueue[Event](), SimpleQueue[Event]()
    worker.submit(asked(first, 4))
    target.gate.release()
    assert first.get(timeout=5).tokens == (1,)
    worker.submit(asked(second, 1))
    target.gate.release(2)
    assert second.get(timeout=5).finish_reason == "length"
    target.gate.release(2)
    while first.get(timeout=5).finish_reason is None:
        pass
    assert target.forwards <= 5


def test_cancel_is_heard_within_a_round(target: Gated, worker: EngineWorker) -> None:
    events = SimpleQueue[Event]()
    ticket = worker.submit(asked(events, 500))
    target.gate.release()
    events.get(timeout=5)
    ticket.cancel()
    target.gate.release()  # at most the round that had begun
    reasons = [events.get(timeout=5).finish_reason]
    while reasons[-1] is None:
        reasons.append(events.get(timeout=5).finish_reason)
    assert reasons in (["cancelled"], [None, "cancelled"])


def test_a_forward_that_fails_ends_its_requests_and_not_the_thread(target: Gated, worker: EngineWorker) -> None:
    events = SimpleQueue[Event]()
    target.broken = True
    target.gate.release()
    worker.submit(asked(events, 2))
    error = events.get(timeout=5).error
    assert isinstance(error, EngineError)
    assert "device lost" in str(error)
    target.broken = False
    target.gate.release(2)
    worker.submit(asked(events, 2))
    assert [events.get(timeout=5).tokens for _ in range(2)] == [(1,), (2,)]


def test_closing_ends_what_runs_and_refuses_what_comes(target: Gated, worker: EngineWorker) -> None:
    events = SimpleQueue[Event]()
    worker.submit(asked(events, 500))
    target.gate.release(1000)
    worker.close()
    last = events.get(timeout=5)
    while last.finish_reason is None:
        last = events.get(timeout=5)
    assert isinstance(last.error, EngineError)
    with pytest.raises(EngineError, match="closed"):
        worker.submit(asked(events, 1))


def test_cancelling_takes_no_lock_that_a_finalizer_could_find_held(target: Gated, worker: EngineWorker) -> None:
    ticket = worker.submit(asked(SimpleQueue[Event](), 5))
    finalizer = threading.Thread(target=ticket.cancel, daemon=True)
    with worker._lock, MODEL_THREAD._lock:
        finalizer.start()
        finalizer.join(5)
        assert not finalizer.is_alive()
