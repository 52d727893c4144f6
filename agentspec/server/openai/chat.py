"""`/v1/chat/completions`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter, Request, Response

from agentspec.chat.base import Delta
from agentspec.server.desk import Asked, Desk
from agentspec.server.door import EVENTS, PROBLEMS, desk_for
from agentspec.server.openai.chat_answer import ChatAnswer
from agentspec.server.openai.chat_request import PATH, ChatRequest
from agentspec.server.openai.fields import renaming
from agentspec.server.openai.wire import error_body
from agentspec.server.problems import Problem
from agentspec.server.sse import DONE, message, stream, unless_gone

router = APIRouter()


@router.post(PATH, responses=PROBLEMS | EVENTS, response_model=None)
async def chat_completions(asked: ChatRequest, request: Request) -> Response | dict[str, Any]:
    """A chat completion, whole or, with `stream`, in chunks."""
    desk = desk_for(request, asked.model)
    answer = ChatAnswer(asked.model, desk.engine.spell)
    with renaming(asked.names):
        ask = asked.asked(desk.settings)
        if not asked.stream:
            return await unless_gone(request, _whole(desk, ask, answer))
        usage = asked.stream_options is not None and asked.stream_options.include_usage
        return await stream(_chunks(desk, ask, answer, usage=usage))


async def _whole(desk: Desk, ask: Asked, answer: ChatAnswer) -> dict[str, Any]:
    deltas: list[list[Delta]] = [[] for _ in range(ask.params.n)]
    async with await desk.start(ask) as answering:
        async for event in answering:
            deltas[event.index] += event.deltas
    return answer.whole(answering.results, deltas)


async def _chunks(desk: Desk, ask: Asked, answer: ChatAnswer, *, usage: bool) -> AsyncGenerator[bytes]:
    async with await desk.start(ask) as answering:
        for index in range(ask.params.n):
            yield message(answer.opening(index))
        try:
            async for event in answering:
                for chunk in answer.chunks(event):
                    yield message(chunk)
        except Problem as problem:
            yield message(error_body(problem))
            return
    if usage:
        yield message(answer.usage(answering.results))
    yield DONE
