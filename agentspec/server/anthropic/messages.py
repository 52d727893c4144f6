"""`/v1/messages` and `/v1/messages/count_tokens`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from anthropic.types import MessageTokensCount
from fastapi import APIRouter, Request, Response

from agentspec.server.anthropic.answer import MessageAnswer
from agentspec.server.anthropic.request import Conversation, MessagesRequest
from agentspec.server.anthropic.wire import PATH, PROBLEMS, error_body
from agentspec.server.desk import Asked, Desk
from agentspec.server.door import EVENTS, desk_for
from agentspec.server.openai.fields import renaming
from agentspec.server.problems import Problem
from agentspec.server.sse import message, stream, unless_gone

router = APIRouter()


@router.post(PATH, responses=PROBLEMS | EVENTS, response_model=None)
async def messages(asked: MessagesRequest, request: Request) -> Response | dict[str, Any]:
    """A message, whole or, with `stream`, in events."""
    desk = desk_for(request, asked.model)
    with renaming(asked.names):
        ask = asked.asked(desk.settings)
        answer = MessageAnswer(asked.model)
        if asked.stream:
            return await stream(_events(desk, ask, answer))
        return await unless_gone(request, _whole(desk, ask, answer))


@router.post(f"{PATH}/count_tokens", responses=PROBLEMS, response_model=None)
async def count_tokens(asked: Conversation, request: Request) -> dict[str, Any]:
    """How many tokens a conversation has, tools and what the chat template adds included."""
    desk = desk_for(request, asked.model)
    options = asked.tool_options(desk.settings)
    tools = (options.get("tools") or ()) if options.get("tool_choice") != "none" else ()
    count = await asyncio.to_thread(desk.engine.count_tokens, asked.turns(desk.settings), tools)
    return MessageTokensCount(input_tokens=count).to_dict(mode="json")


async def _whole(desk: Desk, ask: Asked, answer: MessageAnswer) -> dict[str, Any]:
    async with await desk.start(ask) as answering:
        async for event in answering:
            for _ in answer.events(event.deltas):
                pass
    return answer.whole(answering.results[0])


async def _events(desk: Desk, ask: Asked, answer: MessageAnswer) -> AsyncGenerator[bytes]:
    async with await desk.start(ask) as answering:
        yield _event(answer.opening(len(answering.running.prompt)))
        try:
            async for event in answering:
                for told in answer.events(event.deltas):
                    yield _event(told)
        except Problem as problem:
            yield _event(error_body(problem))
            return
    for told in answer.closing(answering.results[0]):
        yield _event(told)


def _event(told: dict[str, Any]) -> bytes:
    return message(told, told["type"])
