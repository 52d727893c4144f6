"""Serving under load: who has gone, who comes too late, who is one too many; nobody's failure is another's."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

import pytest
from chat_requests import CHAT, HI
from engine_doubles import ScriptedEngine
from openai import APIError, OpenAI

from agentspec.config import SamplingParams
from agentspec.models.base import Output, Row
from agentspec.server.desk import Asked, Desk, Running
from agentspec.server.limits import ReadingLimit
from agentspec.server.problems import Problem
from agentspec.server.settings import ServerSettings
from agentspec.server.sse import stream

ROUND_S = 0.03
LONG = "abcdefgh" * 500  # 500 rounds or more: no test waits for its end


class SlowEngine(ScriptedEngine):
    """Takes its time for each round; a prompt that says "short" is answered in one."""

    def __init__(self) -> None:
        super().__init__(lambda prompt: "ok" if "short" in prompt else LONG)
        forward = self.target.forward

        def slowly(rows: Sequence[Row]) -> Output:
            sleep(ROUND_S)
            return forward(rows)

        self.target.forward = slowly  # type: ignore[method-assign]


@pytest.fixture(scope="module")
def slow() -> Iterator[SlowEngine]:
    with SlowEngine() as engine:
        yield engine


def soon(holds: Callable[[], bool]) -> bool:
    """Whether it comes to hold."""
    end = monotonic() + 5
    while not holds() and monotonic() < end:
        sleep(0.005)
    return holds()


def load(endpoint) -> tuple[int, int]:
    """Answers that run and wait, as /health tells."""
    health = endpoint.get("/health").json()
    return health["running"], health["waiting"]


def is_idle(endpoint) -> bool:
    return load(endpoint) == (0, 0) and endpoint.engine._worker.idle


@contextmanager
def asking(endpoint, **body: Any) -> Iterator[socket.socket]:
    """A client that has sent a request, and goes away when the block is left."""
    content = json.dumps({"model": "smollm2-135m", "messages": HI, **body}).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    host, _, port = endpoint.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        yield connection


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("n", [1, 2])
def test_a_request_ends_within_a_round_when_its_client_goes(serve, slow, stream, n):
    endpoint = serve(slow)
    before = slow.target.forwards
    with asking(endpoint, stream=stream, n=n):
        assert soon(lambda: slow.target.forwards > before + 3)
        assert load(endpoint) == (n, 0)
    before = slow.target.forwards
    assert soon(lambda: is_idle(endpoint))
    assert slow.target.forwards <= before + 2


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_waits_may_go_too(serve, slow, stream):
    endpoint = serve(slow, max_running=1)
    with asking(endpoint):
        assert soon(lambda: load(endpoint) == (1, 0))
        with asking(endpoint, stream=stream):
            assert soon(lambda: load(endpoint) == (1, 1))
        assert soon(lambda: load(endpoint) == (1, 0))
    assert soon(lambda: is_idle(endpoint))


def test_one_more_than_the_queue_holds_is_told_when_to_come_back(serve, slow):
    endpoint = serve(slow, max_running=1, max_queue=1)
    with asking(endpoint, stream=True), asking(endpoint):
        assert soon(lambda: load(endpoint) == (1, 1))
        for stream in (True, False):
            answer = endpoint.post(CHAT, {"messages": HI, "stream": stream})
            assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
            assert answer.json()["error"]["code"] == "queue_full"
    assert soon(lambda: is_idle(endpoint))
    assert endpoint.post(CHAT, {"messages": [{"role": "user", "content": "short"}]}).status_code == 200


@pytest.mark.parametrize(("took_s", "retry_s"), [(0.1, 1), (39.9, 10), (4000.0, 30)])
async def test_who_finds_the_queue_full_comes_back_when_a_place_is_likely_free(took_s, retry_s):
    """Of four answers inside one ended after so long: a fourth of that later the next one does."""
    desk = Desk(None, ServerSettings(model_names=("m",), max_queue=2), max_running=2)  # type: ignore[arg-type]
    asked = Asked(CHAT, HI, SamplingParams(), {})
    desk._inside = 4
    desk.leave(Running(asked, started=monotonic() - took_s), None)
    desk._inside = 4
    with pytest.raises(Problem) as refused:
        await desk.start(asked)
    assert refused.value.retry_after_s == retry_s


def test_more_answers_than_may_ever_be_in_are_refused_for_good(serve, slow):
    endpoint = serve(slow, max_running=1, max_queue=1)
    assert endpoint.post(CHAT, {"messages": HI, "n": 3}).json()["error"]["param"] == "n"
    prompts = endpoint.post("/v1/completions", {"prompt": ["short"] * 3})
    assert (prompts.status_code, prompts.json()["error"]["param"]) == (400, "prompt")


async def test_a_client_that_takes_nothing_of_its_answer_counts_as_gone():
    closed = []

    async def parts():
        try:
            while True:
                yield b"data: 1\n\n"
        finally:
            closed.append(True)

    async def answer(scope, receive, send):
        await (await stream(parts()))(scope, receive, send)

    async def receive():
        await asyncio.sleep(3600)

    async def send(message):
        if message.get("body"):
            await asyncio.sleep(3600)

    scope = {"type": "http", "asgi": {"spec_version": "2.4"}}
    await asyncio.wait_for(ReadingLimit(answer, seconds=0.05)(scope, receive, send), 5)
    assert closed == [True]


def test_a_request_that_takes_too_long_to_read_ends_at_its_deadline(serve, monkeypatch):
    with ScriptedEngine("ok") as engine:
        endpoint = serve(engine, request_timeout_s=0.1)
        monkeypatch.setattr(engine._asker, "read", lambda ask: sleep(0.4))
        assert endpoint.post(CHAT, {"messages": HI}).status_code == 504
        assert load(endpoint) == (0, 0)


def test_a_request_ends_at_its_deadline(serve, slow):
    endpoint = serve(slow, request_timeout_s=0.3)
    answer = endpoint.post(CHAT, {"messages": HI})
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timeout")
    client = OpenAI(base_url=f"{endpoint.url}/v1", api_key="none", max_retries=0)
    chunks = client.chat.completions.create(model="smollm2-135m", messages=HI, stream=True)
    written = []
    with pytest.raises(APIError, match="ran out of time"):
        written.extend(chunk.choices[0].delta.content or "" for chunk in chunks)
    client.close()
    assert LONG.startswith("".join(written))
    assert written[1:]
    assert soon(lambda: is_idle(endpoint))


def test_one_requests_failure_is_no_others(serve):
    """The grammar of one request allows no token of the vocabulary at its third place, in the middle of the batch."""
    with ScriptedEngine(LONG[:64]) as engine:
        endpoint = serve(engine)
        bodies = [{"messages": HI, "seed": seed, "stream": seed % 2 == 0} for seed in range(6)]
        bodies[3] = {"messages": HI, "regex": "ab\\x00", "logit_bias": {"0": -100}}
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda body: endpoint.post(CHAT, body), bodies))
    assert [answer.status_code for answer in answers] == [200, 200, 200, 422, 200, 200]
    assert {answers[place].json()["choices"][0]["message"]["content"] for place in (1, 5)} == {LONG[:64]}
