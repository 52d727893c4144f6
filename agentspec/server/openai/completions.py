"""`/v1/completions`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

from fastapi import APIRouter, Request, Response

from agentspec.local.result import StreamEvent
from agentspec.server.desk import Answering, Asked, Desk
from agentspec.server.door import EVENTS, PROBLEMS, desk_for
from agentspec.server.openai.completions_answer import CompletionAnswer
from agentspec.server.openai.completions_request import PATH, CompletionsRequest
from agentspec.server.openai.fields import renaming
from agentspec.server.openai.wire import error_body
from agentspec.server.problems import Problem
from agentspec.server.sse import DONE, message, stream, unless_gone

router = APIRouter()


@router.post(PATH, responses=PROBLEMS | EVENTS, response_model=None)
async def completions(asked: CompletionsRequest, request: Request) -> Response | dict[str, Any]:
    """A text completion of each prompt, whole or, with `stream`, in chunks."""
    desk = desk_for(request, asked.model)
    asks = asked.asked(desk.settings)
    texts = [_text(prompt, desk) if asked.echo else "" for prompt in asked.prompts for _ in range(asked.n or 1)]
    answer = CompletionAnswer(asked.model, desk.engine.spell, texts)
    with renaming(asked.names):
        if not asked.stream:
            return await unless_gone(request, _whole(desk, asks, answer))
        usage = asked.stream_options is not None and asked.stream_options.include_usage
        return await stream(_chunks(desk, asks, answer, usage=usage))


def _text(prompt: str | list[int], desk: Desk) -> str:
    if isinstance(prompt, str):
        return prompt
    return b"".join(map(desk.engine.spell, prompt)).decode(errors="replace")


async def _whole(desk: Desk, asks: Sequence[Asked], answer: CompletionAnswer) -> dict[str, Any]:
    async with _started(desk, asks) as answerings, aclosing(_merged(answerings)) as events:
        async for _ in events:
            pass
        return answer.whole([answering.results for answering in answerings])


async def _chunks(desk: Desk, asks: Sequence[Asked], answer: CompletionAnswer, *, usage: bool) -> AsyncGenerator[bytes]:
    async with _started(desk, asks) as answerings, aclosing(_merged(answerings)) as events:
        for echo in answer.opening():
            yield message(echo)
        try:
            async for prompt, event in events:
                chunk = answer.chunk(prompt * asks[prompt].params.n + event.index, event)
                if chunk is not None:
                    yield message(chunk)
        except Problem as problem:
            yield message(error_body(problem))
            return
        if usage:
            yield message(answer.usage([answering.results for answering in answerings]))
    yield DONE


@asynccontextmanager
async def _started(desk: Desk, asks: Sequence[Asked]) -> AsyncIterator[list[Answering]]:
    """The answers to all prompts, which run together; if one can't be started, none is."""
    desk.check_room(sum(ask.params.n for ask in asks), "prompt")
    async with AsyncExitStack() as stack:
        answerings = []
        for ask in asks:
            answerings.append(await stack.enter_async_context(await desk.start(ask)))
        yield answerings


async def _merged(answerings: Sequence[Answering]) -> AsyncGenerator[tuple[int, StreamEvent]]:
    """The events of several requests as they come, each with the place of its request."""
    coming = {_next(answering): place for place, answering in enumerate(answerings)}
    try:
        while coming:
            done, _ = await asyncio.wait(coming, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                place, event = coming.pop(task), task.result()
                if event is not None:
                    coming[_next(answerings[place])] = place
                    yield place, event
    finally:
        for task in coming:
            task.cancel()
        await asyncio.gather(*coming, return_exceptions=True)


def _next(answering: Answering) -> asyncio.Task[StreamEvent | None]:
    async def event() -> StreamEvent | None:
        return await anext(answering, None)

    return asyncio.create_task(event())
