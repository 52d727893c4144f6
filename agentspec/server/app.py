"""The application: routes, who may use them, and the model that is loaded behind them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from sys import get_int_max_str_digits
from time import time
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from openai.types import Model
from starlette.exceptions import HTTPException
from starlette.routing import Route

from agentspec import __version__
from agentspec.config import EngineConfig
from agentspec.errors import AgentSpecError
from agentspec.server.anthropic import messages
from agentspec.server.anthropic import wire as anthropic_wire
from agentspec.server.desk import Desk, Watcher
from agentspec.server.door import PROBLEMS, Door, desk_for
from agentspec.server.limits import BodyLimit, ReadingLimit
from agentspec.server.metrics import Metrics
from agentspec.server.metrics import router as metrics_router
from agentspec.server.openai import chat, completions, responses
from agentspec.server.openai.wire import error_body
from agentspec.server.page.board import Board
from agentspec.server.page.routes import router as page_router
from agentspec.server.problems import NESTED, Problem, bad_request, problem_of
from agentspec.server.recording import Recorder
from agentspec.server.settings import ServerSettings

if TYPE_CHECKING:
    from agentspec.local.engine import Engine

_TYPES = ("body", "str", "int", "float", "bool", "dict", "list")
_ROUTERS = (chat.router, completions.router, responses.router, messages.router)
_ALL_ROUTERS = (*_ROUTERS, metrics_router, page_router)


def create_app(load: Callable[[], Engine], settings: ServerSettings, *, config: EngineConfig | None = None) -> FastAPI:
    """The endpoint as an ASGI application.

    It answers at once; until the model is loaded `/health` and all that needs the model say 503.

    Args:
        load: Loads the engine; called once, in a thread, when the application starts. Its engine is closed with it.
        settings: Names, limits and who may come in.
        config: That the engine is loaded with.
    """
    max_running = (config or EngineConfig()).max_running

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(_load(app, load, max_running))
        try:
            yield
        finally:
            await _unload(app, loading)

    app = FastAPI(title="agentspec", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.settings, app.state.desk, app.state.failure = settings, None, None
    app.state.started, app.state.respond = int(time()), respond
    app.state.watchers = _watchers(app, settings)
    for router in _ALL_ROUTERS:
        app.include_router(router)
    _add_own_routes(app)
    _add_handlers(app)
    app.add_middleware(BodyLimit, most=settings.max_body_bytes)
    app.add_middleware(Door, settings=settings)
    app.add_middleware(ReadingLimit, seconds=settings.request_timeout_s)
    if settings.cors:
        app.add_middleware(CORSMiddleware, allow_origins=settings.cors, allow_methods=["*"], allow_headers=["*"])
    return app


def respond(request: Request, problem: Problem) -> JSONResponse:
    """A problem as the API of the request's path tells it."""
    request.app.state.metrics.told(request.url.path, problem)
    headers = {} if problem.retry_after_s is None else {"Retry-After": str(problem.retry_after_s)}
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    anthropic = request.url.path.startswith(anthropic_wire.PATH)
    body = anthropic_wire.error_body(problem) if anthropic else error_body(problem)
    return JSONResponse(body, problem.status, headers)


def _watchers(app: FastAPI, settings: ServerSettings) -> list[Watcher]:
    """Those who hear of every request: for `/metrics`, for the page and, where it is wanted, for a recording."""
    routes = [route for router in _ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    model, paths = settings.model_names[0], [route.path for route in routes]
    app.state.metrics, app.state.board = Metrics(model, lambda: app.state.desk, paths), Board()
    record = settings.record
    app.state.recorder = None if record is None else Recorder(record, model=model, redact=settings.record_redact)
    return [each for each in (app.state.metrics, app.state.board, app.state.recorder) if each is not None]


async def _load(app: FastAPI, load: Callable[[], Engine], max_running: int) -> None:
    try:
        engine = await asyncio.to_thread(load)
    except Exception as error:
        app.state.failure = error
        raise
    app.state.desk = Desk(engine, app.state.settings, max_running=max_running, watchers=app.state.watchers)


async def _unload(app: FastAPI, loading: asyncio.Task[None]) -> None:
    with suppress(Exception):
        await loading
    if app.state.desk is not None:
        await asyncio.to_thread(app.state.desk.engine.close)
    if app.state.recorder is not None:
        await asyncio.to_thread(app.state.recorder.close)


def _add_own_routes(app: FastAPI) -> None:
    @app.get("/health", responses={503: {"description": "The model is still being loaded, or could not be"}})
    async def health(request: Request) -> JSONResponse:
        """Whether requests can be answered."""
        desk: Desk | None = request.app.state.desk
        if desk is not None:
            return JSONResponse({"status": "ok", "running": desk.running, "waiting": desk.waiting})
        return JSONResponse({"status": "failed" if request.app.state.failure else "loading"}, 503)

    @app.get("/v1/models", responses=PROBLEMS)
    async def models(request: Request) -> dict[str, Any]:
        """The names that the model goes by."""
        return {"object": "list", "data": [_model(request, name) for name in request.app.state.settings.model_names]}

    @app.get("/v1/models/{name:path}", responses=PROBLEMS)
    async def model(name: str, request: Request) -> dict[str, Any]:
        """One of them."""
        desk_for(request, name)
        return _model(request, name)


def _model(request: Request, name: str) -> dict[str, Any]:
    return Model(id=name, created=request.app.state.started, object="model", owned_by="agentspec").to_dict()


def _add_handlers(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return respond(request, _invalid(error, request.headers.get("content-type", "")))

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code in (404, 405):
            return _astray(request)
        cause = _unreadable(error.__cause__)
        return respond(request, Problem(error.status_code, cause or str(error.detail)))

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> JSONResponse:
        return respond(request, problem_of(error))

    for kind in (Problem, AgentSpecError):
        app.add_exception_handler(kind, failed)


def _astray(request: Request) -> JSONResponse:
    """What the server answers, told where nothing answers this path, or not this method."""
    path, method = request.scope["path"], request.method
    routes = [each for router in _ALL_ROUTERS for each in router.routes]
    here = [each for each in (*routes, *request.app.routes) if isinstance(each, Route) and each.path_regex.match(path)]
    if here:
        allowed = ", ".join(sorted({name for each in here for name in each.methods or ()}))
        answer = respond(request, Problem(405, f"{path!r} is not for {method}: use {allowed}"))
        answer.headers["Allow"] = allowed
        return answer
    found: dict[str, list[str]] = {}
    for served, methods in request.app.openapi()["paths"].items():
        for name in methods:
            found.setdefault(name.upper(), []).append(served)
    told = "; ".join(f"{name} {', '.join(paths)}" for name, paths in found.items())
    return respond(request, Problem(404, f"nothing answers {method} {path!r} here; what does: {told}"))


def _unreadable(cause: BaseException | None) -> str | None:
    """Why a body is no text or no JSON that can be read, where FastAPI says only that it isn't."""
    match cause:
        case UnicodeDecodeError():
            byte, place = cause.object[cause.start], cause.start
            return f"the body is not {cause.encoding}: byte {place} is 0x{byte:02x}, {cause.reason}; send JSON in UTF-8"
        case RecursionError():
            return NESTED
        case ValueError():
            return f"the body can't be read: it holds a number of more than {get_int_max_str_digits():,} digits"
    return None


def _invalid(error: RequestValidationError, sent_as: str) -> Problem:
    """What a body has to be and is not: the first field that is wrong, with all that it may be."""
    errors = error.errors()
    first = errors[0]
    field = _field(first["loc"])
    if first["type"] == "json_invalid":
        what, place = first.get("ctx", {}).get("error", first["msg"]), first["loc"][-1]
        return bad_request(f"the body is not JSON: {what}, at character {place}")
    if field is None and "json" not in sent_as:
        return bad_request(f"the body must be JSON, sent as Content-Type: application/json, not {sent_as!r}")
    words = [each["msg"][:1].lower() + each["msg"][1:] for each in errors if each["loc"][:2] == first["loc"][:2]]
    return bad_request(f"{field or 'the body'}: {', or '.join(dict.fromkeys(words))}", field)


def _field(place: Sequence[str | int]) -> str | None:
    """A field as clients write it, `messages[0].role`; without the names of types that were tried for it."""
    path = ""
    for part in place:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part.isidentifier() and part not in _TYPES:
            path += f".{part}" if path else part
    return path or None
