"""The pages on LangChain: each line of docs/migration.md is made and run, and docs/langchain.md tells every option."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from endpoint_server import MODEL, Endpoint, serving
from engine_doubles import scripted_engine
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from agentspec import ChatAgentSpec
from agentspec.langchain.call import GIVEN
from agentspec.langchain.settings import ChatSettings
from agentspec.server.settings import ServerSettings

DOCS = Path(__file__).resolve().parents[2] / "docs"
SETTING = re.compile(r"[a-z_]+=")
NOT_RUN = ("ChatOllama", "ChatHuggingFace")


class Trip(BaseModel):
    """A trip."""

    far: bool


def weather(city: str) -> str:
    """Tell the weather."""
    return f"{city}: rain"


def code(cell: str) -> str | None:
    found = re.fullmatch(r"`([^`]+)`", cell.strip())
    return found[1] if found else None


def rows() -> Iterator[Any]:
    for line in (DOCS / "migration.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| Chat"):
            before = line.split("|")[1].strip()
        elif line.startswith("|") and "---" not in line:
            left, right = line.split("|")[1:3]
            yield pytest.param(before, code(left), code(right), id=f"{before}: {left.strip()[:50]}")


def reply(prompt: str) -> str:
    call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    return call if '"weather"' in prompt else '{"far": true}'


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with scripted_engine(reply) as engine, serving(engine, ServerSettings(model_names=(MODEL,))) as running:
        yield running


def value(text: str, model: Any) -> Any:
    """What an expression of the page gives, as far as it is the same each time."""
    called = AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "1"}])
    names = [ChatAgentSpec, HumanMessage, ToolMessage, Trip, weather]
    known = {"model": model, "called": called, **{name.__name__: name for name in names}}
    found = eval(text, known | ({"answer": model.invoke("hi")} if "answer" in text else {}))
    return [{**call, "id": ""} for call in found] if isinstance(found, list) else found


def settings(text: str) -> dict[str, Any]:
    return eval(f"dict({text})")


@pytest.mark.parametrize(("before", "left", "right"), list(rows()))
def test_a_line_of_the_migration_page(endpoint: Endpoint, before: str, left: str | None, right: str | None) -> None:
    ours = None
    if right and SETTING.match(right):
        ours = ChatAgentSpec(**settings(right))
    elif right:
        ours = value(right, ChatAgentSpec(engine=endpoint.engine, max_tokens=200))
    if before in NOT_RUN or left is None:
        return
    where = {"base_url": f"{endpoint.url}/v1", "api_key": "none", "model": MODEL, "max_completion_tokens": 200}
    if SETTING.match(left):
        given = {name: set_to for name, set_to in settings(left).items() if name != "base_url"}
        assert ChatOpenAI(**{**where, **given}).invoke("hi").content
    else:
        assert value(left, ChatOpenAI(**where, temperature=0)) == ours


def test_every_page_has_its_lines() -> None:
    assert [sum(row.values[0] == name for row in rows()) > 15 for name in ("ChatOpenAI", *NOT_RUN)] == [True] * 3


def test_every_option_is_told() -> None:
    page = (DOCS / "langchain.md").read_text(encoding="utf-8")
    named = {*GIVEN, *(name for name in ChatSettings.__annotations__ if not name.startswith(("_", "model_config")))}
    assert [name for name in sorted(named) if f"`{name}`" not in page] == []
