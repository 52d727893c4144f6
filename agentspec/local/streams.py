"""The events of running answers, for whoever waits for them in a thread or in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from queue import SimpleQueue

from agentspec.engine.request import Event
from agentspec.engine.worker import Ticket
from agentspec.local.reader import Reader
from agentspec.local.result import Result, StreamEvent


class Stream(Iterator[StreamEvent]):
    """One answer's events; left early, closed or dropped, it cancels the request."""

    def __init__(self, queue: SimpleQueue[Event], reader: Reader, tickets: Sequence[Ticket]) -> None:
        self._queue, self._reader, self._tickets = queue, reader, tickets
        self._over = False

    def __next__(self) -> StreamEvent:
        if self._over:
            raise StopIteration
        try:
            self._tickets[0].check()
            event = self._reader.read(self._queue.get())
        except BaseException:
            self.close()
            raise
        self._over = event.result is not None
        return event

    def close(self) -> None:
        """End the request within a round, if it still runs."""
        if not self._over:
            self._over = True
            cancel(self._tickets)

    def __del__(self) -> None:
        self.close()


class LoopQueue:
    """Events of several answers, which the engine's thread puts in and a coroutine of the current loop takes out."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[tuple[int, Event]] = asyncio.Queue()

    def put(self, index: int, event: Event) -> None:
        """Add news of an answer. In any thread."""
        # A loop that was closed in the meantime has nobody left to tell.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._queue.put_nowait, (index, event))

    async def get(self) -> tuple[int, Event]:
        """The next news."""
        return await self._queue.get()


class AsyncStream(AsyncIterator[StreamEvent]):
    """The events of a request's answers, as they come; closed or dropped before they are over, it cancels the request.

    Attributes:
        prompt: Its tokens.
    """

    def __init__(
        self, queue: LoopQueue, readers: Sequence[Reader], tickets: Sequence[Ticket], *, prompt: Sequence[int]
    ) -> None:
        self.prompt = prompt
        self._queue, self._readers, self._tickets = queue, readers, tickets
        self._running = len(readers)

    async def __anext__(self) -> StreamEvent:
        if not self._running:
            raise StopAsyncIteration
        try:
            index, event = await self._queue.get()
            read = self._readers[index].read(event)
        except BaseException:
            await self.aclose()
            raise
        self._running -= read.result is not None
        return replace(read, index=index)

    async def whole(self) -> Result:
        """Wait for every answer; the first one's result, the others as its alternatives."""
        results: dict[int, Result] = {}
        try:
            async for event in self:
                if event.result is not None:
                    results[event.index] = event.result
        except BaseException:
            await self.aclose()
            raise
        first, *others = (results[index] for index in sorted(results))
        return replace(first, alternatives=tuple(others))

    async def aclose(self) -> None:
        """End the request within a round, if it still runs."""
        if self._running:
            self._running = 0
            cancel(self._tickets)

    def __del__(self) -> None:
        if self._running:
            cancel(self._tickets)


def drain(queue: SimpleQueue[Event], reader: Reader) -> Result:
    """Wait for an answer's end."""
    result = None
    while result is None:
        result = reader.read(queue.get()).result
    return result


def cancel(tickets: Sequence[Ticket]) -> None:
    """Cancel what still runs; harmless for what is over."""
    for ticket in tickets:
        ticket.cancel()
