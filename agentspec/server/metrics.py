"""`/metrics`: what the endpoint did, for Prometheus."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Collection, Iterator
from functools import partial
from time import monotonic
from typing import Literal

from fastapi import APIRouter, Request, Response
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    Metric,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.registry import Collector

from agentspec import __version__
from agentspec.local.result import Result, StreamEvent
from agentspec.server.desk import Desk, Running
from agentspec.server.door import PROBLEMS
from agentspec.server.problems import GONE, Problem
from agentspec.trace import StepRecord

Outcome = Literal["answered", "cancelled", "timeout", "refused", "failed"]

_OTHER = "other"
_FIRST_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160)
_EACH_S = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5)
_WHOLE_S = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640)

_TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"

router = APIRouter()


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"description": "Samples", "content": {_TEXT_FORMAT: {}}},
        401: PROBLEMS[401],
        403: PROBLEMS[403],
    },
)
async def metrics(request: Request) -> Response:
    """Counters, gauges and histograms in Prometheus' text format."""
    found: Metrics = request.app.state.metrics
    return Response(generate_latest(_Quiet(found.registry)), media_type=_TEXT_FORMAT)


class _Quiet(Collector):
    """A registry's samples without the time at which each was made, as many again, which Prometheus has no use for."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        """Each metric with its samples."""
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric


class Metrics:
    """Counts for one application, in a registry of its own: a watcher of its desk.

    Requests that were let in are counted by outcome, those that were not by the status that they were told. What was
    drafted is known of answers that ended, not of those that were cancelled.

    Args:
        model: What clients call it.
        desk: The desk, once there is one.
        paths: Of the APIs; whatever else was asked for counts as "other", so that labels stay few.
    """

    def __init__(self, model: str, desk: Callable[[], Desk | None], paths: Collection[str]) -> None:
        self.registry = CollectorRegistry()
        self._paths = frozenset(paths)
        self._silent: set[str] = set()  # requests that nothing was written for yet
        Info("agentspec", "What is served", registry=self.registry).info({"version": __version__, "model": model})
        ProcessCollector(registry=self.registry)
        self._add_gauges(desk)
        self._add_counters()
        self._first_s = self._seconds("time_to_first_token", "From a request's admission to its first token", _FIRST_S)
        self._each_s = self._seconds("time_per_token", "Of an answer, after its first round: mean per token", _EACH_S)
        self._whole_s = self._seconds("request_duration", "Of requests that were answered", _WHOLE_S)

    def started(self, running: Running) -> None:
        """It was let in."""
        self._silent.add(running.id)

    def wrote(self, running: Running, event: StreamEvent) -> None:
        """More of an answer."""
        api = running.asked.api
        if event.tokens:
            if running.id in self._silent:
                self._silent.discard(running.id)
                self._first_s.labels(api).observe(monotonic() - running.started)
            self._completion_tokens.labels(api).inc(len(event.tokens))
            self._forwards.labels(api).inc()
        if event.result is not None:
            self._ended(api, event.result)

    def ended(self, running: Running, problem: Problem | None) -> None:
        """It is over."""
        api = running.asked.api
        self._silent.discard(running.id)
        self._requests.labels(api, _outcome(problem)).inc()
        self._prompt_tokens.labels(api).inc(len(running.prompt))
        if running.results:
            first = running.results[min(running.results)]
            self._cached_tokens.labels(api).inc(first.usage.cached_tokens)
        if problem is None:
            self._whole_s.labels(api).observe(monotonic() - running.started)

    def told(self, path: str, problem: Problem) -> None:
        """A problem was the answer, before any of a stream was written."""
        api = path if path in self._paths else _OTHER
        self._errors.labels(api, str(problem.status)).inc()
        if problem.code == "queue_full":
            self._queue_refusals.labels(api).inc()

    def _ended(self, api: str, result: Result) -> None:
        for (source, segment), drafted in _drafted(result.rounds).items():
            self._drafted.labels(source, segment).inc(drafted)
        for (source, segment), accepted in _accepted(result.rounds).items():
            self._accepted.labels(source, segment).inc(accepted)
        later = sum(len(record.tokens) for record in result.rounds[1:])
        if later:
            self._each_s.labels(api).observe(result.stats.decode_ms / 1000 / later)

    def _add_gauges(self, desk: Callable[[], Desk | None]) -> None:
        for name, words in (("running", "Answers that the engine works on"), ("waiting", "Answers that wait")):
            gauge = Gauge(f"agentspec_answers_{name}", words, registry=self.registry)
            gauge.set_function(partial(_count, desk, name))

    def _add_counters(self) -> None:
        api = ("api",)
        self._requests = self._counter("requests", "Requests that were let in and are over", (*api, "outcome"))
        self._errors = self._counter("error_responses", "Requests answered with an error status", (*api, "status"))
        self._queue_refusals = self._counter("queue_refusals", "Requests that found the queue full", api)
        self._prompt_tokens = self._counter("prompt_tokens", "Tokens of prompts", api)
        self._cached_tokens = self._counter(
            "prompt_cached_tokens", "Tokens of prompts that were in the prefix cache, where an answer ended", api
        )
        self._completion_tokens = self._counter("completion_tokens", "Tokens that were written", api)
        self._forwards = self._counter(
            "forwards", "Forwards that gave an answer tokens; one that several answers share counts for each", api
        )
        where = ("source", "segment")
        self._drafted = self._counter("drafted_tokens", "Tokens that were drafted, of answers that ended", where)
        self._accepted = self._counter("accepted_tokens", "Drafted tokens that were accepted, likewise", where)

    def _counter(self, name: str, words: str, labels: tuple[str, ...]) -> Counter:
        return Counter(f"agentspec_{name}", words, labels, registry=self.registry)

    def _seconds(self, name: str, words: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"agentspec_{name}_seconds", words, ("api",), buckets=buckets, registry=self.registry)


def _count(desk: Callable[[], Desk | None], name: str) -> int:
    return getattr(desk(), name, 0)


def _outcome(problem: Problem | None) -> Outcome:
    if problem is None:
        return "answered"
    if problem is GONE:
        return "cancelled"
    if problem.status == 504:
        return "timeout"
    return "refused" if problem.status < 500 else "failed"


def _drafted(rounds: tuple[StepRecord, ...]) -> Counts[tuple[str, str]]:
    return Counts(
        (source, segment.value)
        for record in rounds
        for source, segment in zip(record.draft.sources, record.segments, strict=True)
    )


def _accepted(rounds: tuple[StepRecord, ...]) -> Counts[tuple[str, str]]:
    return Counts(
        (record.draft.sources[node], record.segments[node].value) for record in rounds for node in record.path
    )
