"""Routes of the page: three files that need no key, and what it shows, which does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from agentspec import __version__
from agentspec.explain.styles import STYLES, Style, style_of
from agentspec.server.door import desk_for
from agentspec.server.page.board import Board, style_name
from agentspec.server.problems import Problem

if TYPE_CHECKING:
    from agentspec.server.desk import Desk
    from agentspec.server.settings import ServerSettings

_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_UNKNOWN = "?"

router = APIRouter(include_in_schema=False)


@router.get("/")
async def index() -> Response:
    """The page."""
    return _file("index.html", "text/html")


@router.get("/page/page.js")
async def script() -> Response:
    """Its script."""
    return _file("page.js", "text/javascript")


@router.get("/page/icon.svg")
async def icon() -> Response:
    """Its icon."""
    return _file("icon.svg", "image/svg+xml")


@router.get("/page/page.css")
async def style() -> Response:
    """How it looks; the sources as in `agentspec explain --html`."""
    return Response(_text("page.css") + "\n".join(source_rules()) + "\n", media_type="text/css", headers=_HEADERS)


@router.get("/page/state")
async def state(request: Request) -> dict[str, Any]:
    """What is running, and figures of the last answers and of all."""
    of = request.app.state
    board: Board = of.board
    desk: Desk | None = of.desk
    settings: ServerSettings = of.settings
    return {
        "status": "ok" if desk else "failed" if of.failure else "loading",
        "version": __version__,
        "models": settings.model_names,
        "load": {"running": desk.running if desk else 0, "waiting": desk.waiting if desk else 0},
        **board.wire,
    }


@router.get("/page/answers/{name}")
async def answer(name: str, request: Request) -> dict[str, Any]:
    """One of the last answers, token by token."""
    board: Board = request.app.state.board
    found = board.answer(name)
    if found is None:
        raise Problem(404, "the answer is not kept any more")
    return await asyncio.to_thread(found.pieces, desk_for(request).engine.spell)


def source_rules() -> Iterator[str]:
    """CSS rules for each source, of the table that all views share."""
    styles = {**STYLES, _UNKNOWN: style_of(_UNKNOWN)}
    yield from (f".{style_name(name)} {{ color: {each.light}; {_line(each)} }}" for name, each in styles.items())
    dark = (f".{style_name(name)} {{ color: {each.dark}; }}" for name, each in styles.items())
    yield f"@media (prefers-color-scheme: dark) {{ {' '.join(dark)} }}"


def _line(style: Style) -> str:
    line = "none" if style.line == "none" else f"underline {style.line} 1.5px"
    return f"text-decoration: {line}; text-underline-offset: .25em;"


def _file(name: str, kind: str) -> Response:
    return Response(_text(name), media_type=kind, headers=_HEADERS)


def _text(name: str) -> str:
    return files("agentspec.server.page").joinpath(name).read_text(encoding="utf-8")
