"""`/v1/responses`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from fastapi import APIRouter, Request, Response

from agentspec.server.desk import Asked, Desk
from agentspec.server.door import EVENTS, PROBLEMS, desk_for
from agentspec.server.openai.fields import renaming
from agentspec.server.openai.responses_answer import ResponseFrame
from agentspec.server.openai.responses_events import ResponseWriter
from agentspec.server.openai.responses_memory import Item, ResponsesMemory
from agentspec.server.openai.responses_request import PATH, ResponsesRequest
from agentspec.server.problems import Problem, bad_request
from agentspec.server.sse import message, stream, unless_gone

router = APIRouter()


@router.post(PATH, responses=PROBLEMS | EVENTS, response_model=None)
async def create_response(asked: ResponsesRequest, request: Request) -> Response | dict[str, Any]:
    """A response, whole or, with `stream`, as events."""
    desk = desk_for(request, asked.model)
    work = _read(asked, desk, _memory(request))
    with renaming(asked.names):
        if not asked.stream:
            return await unless_gone(request, _whole(work))
        return await stream(_events(work))


@router.get(PATH + "/{response_id}", responses=PROBLEMS)
async def get_response(response_id: str, request: Request, stream: bool = False) -> dict[str, Any]:
    """A response that is remembered."""
    if stream:
        raise bad_request("a response that is over can't be streamed again: leave out stream", "stream")
    return _memory(request).find(response_id, param="response_id").response


@router.delete(PATH + "/{response_id}", responses=PROBLEMS)
async def delete_response(response_id: str, request: Request) -> dict[str, Any]:
    """Forgets a response."""
    _memory(request).forget(response_id, param="response_id")
    return {"id": response_id, "object": "response", "deleted": True}


@dataclass(frozen=True, slots=True)
class _Work:
    """A request that was read, and where its response goes."""

    desk: Desk
    ask: Asked
    writer: ResponseWriter
    items: Sequence[Item]
    memory: ResponsesMemory | None

    def keep(self) -> None:
        """Remember the response, if it is over and may be remembered."""
        whole = self.writer.whole
        if whole is not None and self.memory is not None:
            self.memory.keep(whole, [*self.items, *whole["output"]])


def _memory(request: Request) -> ResponsesMemory:
    """The application's, which begins with its first request."""
    state = request.app.state
    if not hasattr(state, "responses"):
        state.responses = ResponsesMemory(state.settings.max_responses)
    return cast(ResponsesMemory, state.responses)


def _read(asked: ResponsesRequest, desk: Desk, memory: ResponsesMemory) -> _Work:
    earlier: Sequence[Item] = ()
    if asked.previous_response_id is not None:
        code = "previous_response_not_found"
        earlier = memory.find(asked.previous_response_id, param="previous_response_id", code=code).items
    given = memory.resolved(asked.items)
    ask = asked.asked(earlier, given, desk.settings)
    writer = ResponseWriter(ResponseFrame(asked, ask.params), desk.engine.spell)
    items = cast(Sequence[Item], [*earlier, *given])  # all were read, so they are such
    return _Work(desk, ask, writer, items, None if asked.store is False else memory)


async def _whole(work: _Work) -> dict[str, Any]:
    async with await work.desk.start(work.ask) as answering:
        async for event in answering:
            work.writer.wrote(event)
    work.keep()
    return cast(dict[str, Any], work.writer.whole)


async def _events(work: _Work) -> AsyncGenerator[bytes]:
    async with await work.desk.start(work.ask) as answering:
        for told in work.writer.opening():
            yield message(told, told["type"])
        try:
            async for event in answering:
                events = work.writer.wrote(event)
                work.keep()
                for told in events:
                    yield message(told, told["type"])
        except Problem as problem:
            told = work.writer.failed(problem)
            yield message(told, told["type"])
