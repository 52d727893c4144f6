"""Where the requests of every API are taken to the engine: who may enter, who watches, and when it is too late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Protocol, Self
from uuid import uuid4

from agentspec.config import SamplingParams
from agentspec.local.ask import Options, Prompt
from agentspec.local.result import Result, StreamEvent
from agentspec.server.problems import GONE, Problem, bad_request, problem_of
from agentspec.server.settings import ServerSettings

if TYPE_CHECKING:
    from agentspec.local.engine import Engine
    from agentspec.local.streams import AsyncStream


_MOST_RETRY_S = 30
_NEWEST = 0.2  # what the latest answer counts for in the mean


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks of the engine, whatever API it came through.

    Attributes:
        api: The path that it came to, such as "/v1/chat/completions".
    """

    api: str
    prompt: Prompt
    params: SamplingParams
    options: Options


@dataclass(slots=True)
class Running:
    """A request that the engine works on, for those who watch.

    Attributes:
        started: On the monotonic clock.
        prompt: Its tokens; empty until it was read.
        results: Of the answers that are over, by index.
    """

    asked: Asked
    id: str = field(default_factory=lambda: uuid4().hex)
    started: float = field(default_factory=monotonic)
    prompt: Sequence[int] = ()
    results: dict[int, Result] = field(default_factory=dict)


class Watcher(Protocol):
    """Hears of every request, in the event loop; must be quick, and must not raise."""

    def started(self, running: Running) -> None:
        """It was let in."""

    def wrote(self, running: Running, event: StreamEvent) -> None:
        """More of an answer."""

    def ended(self, running: Running, problem: Problem | None) -> None:
        """It is over; with a problem where it could not be finished, `GONE` where the client went away."""


class Desk:
    """Takes requests to one engine.

    Args:
        engine: Loaded.
        settings: Limits.
        max_running: How many answers the engine works on at once.
        watchers: Told of every request.
    """

    def __init__(
        self, engine: Engine, settings: ServerSettings, *, max_running: int, watchers: Sequence[Watcher] = ()
    ) -> None:
        self.engine = engine
        self.settings = settings
        self._room = max_running + settings.max_queue
        self._max_running = max_running
        self._watchers = tuple(watchers)
        self._inside = 0
        self._gap_s = 0.0

    @property
    def waiting(self) -> int:
        """Answers that wait for others to end."""
        return max(self._inside - self._max_running, 0)

    @property
    def running(self) -> int:
        """Answers that the engine works on."""
        return min(self._inside, self._max_running)

    def check_room(self, answers: int, param: str) -> None:
        """Refuse a request that no waiting would help.

        Raises:
            Problem: It has more answers than may run and wait here.
        """
        if answers > self._room:
            raise bad_request(f"{answers} answers are more than may run and wait here, {self._room}", param)

    async def start(self, asked: Asked) -> Answering:
        """Start a request, or refuse it before anything is written.

        Raises:
            Problem: The queue is full or too short, or the request can't be used.
        """
        answers = asked.params.n
        if answers > self.settings.max_answers:
            raise bad_request(f"n is {answers}, at most {self.settings.max_answers} may be", "n")
        self.check_room(answers, "n")
        if self._inside + answers > self._room:
            message = f"the queue is full: {self._inside} answers are running or waiting; try again later"
            raise Problem(429, message, "rate_limit_error", code="queue_full", retry_after_s=self._retry_s(answers))
        self._inside += answers
        running = Running(asked)
        for watcher in self._watchers:
            watcher.started(running)
        options: Options = {**asked.options, "rounds": True}
        deadline = asyncio.get_running_loop().time() + self.settings.request_timeout_s
        try:
            async with asyncio.timeout_at(deadline):
                events = await self.engine.start(asked.prompt, asked.params, **options)
        except Exception as error:
            problem = problem_of(error)
            self.leave(running, problem)
            raise problem from error
        except BaseException:
            self.leave(running, GONE)
            raise
        running.prompt = events.prompt
        return Answering(self, running, events, deadline)

    def wrote(self, running: Running, event: StreamEvent) -> None:
        """Hear of more of an answer."""
        if event.result is not None:
            running.results[event.index] = event.result
        for watcher in self._watchers:
            watcher.wrote(running, event)

    def leave(self, running: Running, problem: Problem | None) -> None:
        """Hear that a request is over."""
        if problem is None:
            self._learn_gap(monotonic() - running.started)
        self._inside -= running.asked.params.n
        for watcher in self._watchers:
            watcher.ended(running, problem)

    def _learn_gap(self, seconds: float) -> None:
        """What an answer's time says of how often one ends: as many do in it as are inside (Little's law)."""
        gap = seconds / self._inside
        self._gap_s = gap if not self._gap_s else _NEWEST * gap + (1 - _NEWEST) * self._gap_s

    def _retry_s(self, answers: int) -> int:
        """When there may be room for so many, at the pace at which answers ended so far."""
        missing = self._inside + answers - self._room
        return min(max(ceil(missing * self._gap_s), 1), _MOST_RETRY_S)


class Answering(AsyncIterator[StreamEvent]):
    """The events of a request that was let in; leave its `async with` block to end it, wherever it is.

    Its iteration raises a `Problem` where time ran out, or the engine could not finish the request.

    Attributes:
        running: What those who watch see.
    """

    def __init__(self, desk: Desk, running: Running, events: AsyncStream, deadline: float) -> None:
        self.running = running
        self._desk = desk
        self._events = events
        self._deadline = deadline
        self._problem: Problem | None = None

    async def __anext__(self) -> StreamEvent:
        try:
            async with asyncio.timeout_at(self._deadline):
                event = await anext(self._events)
        except StopAsyncIteration:
            raise
        except Exception as error:
            self._problem = problem_of(error)
            raise self._problem from error
        self._desk.wrote(self.running, event)
        return event

    @property
    def results(self) -> list[Result]:
        """Of the answers, in the order of their index, once all are over."""
        return [self.running.results[index] for index in sorted(self.running.results)]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await self._events.aclose()
        finished = len(self.running.results) == self.running.asked.params.n
        self._desk.leave(self.running, None if finished else self._problem or GONE)
