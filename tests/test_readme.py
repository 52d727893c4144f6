"""The README and docs keep their word: Python blocks run, commands run or at least exist as they are written."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from endpoint_server import MODEL, serving

from agentspec import Engine, EngineConfig
from agentspec.cli.main import app
from agentspec.models import embedded
from agentspec.server.settings import ServerSettings

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SETUP = (
    "python -m venv",
    "pip install",
    "python -m pytest",
    ".ci/run",
    "python examples/07_coding_agent.py",
    "python tests/gpu/check.py",
    "python tests/load/",
    "python tests/replay/oracle_",
    "AGENTSPEC_TEST_MODEL=qwen2.5-coder-1.5b python -m pytest",
)
SERVED = "http://127.0.0.1:8000"


def blocks(language: str) -> list[tuple[str, str]]:
    return [
        (f"{page.name}:{found.group(0).splitlines()[1][:40]}", found.group(2))
        for page in PAGES
        for found in BLOCK.finditer(page.read_text(encoding="utf-8"))
        if found.group(1) == language
    ]


ABSENT = re.compile(r"qwen|\.\./shared|cost\.json|--runs")  # large models, files that are elsewhere, measurements
COMMANDS = [line.partition(" #")[0] for _, block in blocks("sh") for line in block.splitlines() if line.strip()]


def test_there_is_something_to_test() -> None:
    assert len(blocks("python")) >= 2
    assert any(command.startswith("agentspec demo") for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_exists_as_it_is_written(command: str) -> None:
    if command.startswith(SETUP):
        return
    words = shlex.split(command.partition(">")[0])
    assert words[0] == "agentspec", f"not a command of ours, nor one of setting up: {command}"
    group = typer.main.get_command(app)
    context = group.make_context("agentspec", words[1:], resilient_parsing=True)
    name, found, arguments = group.resolve_command(context, words[1:])  # type: ignore[attr-defined]
    found.make_context(name, list(arguments), parent=context).close()


@pytest.fixture
def default_model(smollm2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded default, wherever the tests found it.

    Others hold `resolve` under a name of their own, from when they were imported; `fetch` is looked up at each call.
    """
    fetch = embedded.fetch
    monkeypatch.setattr(embedded, "fetch", lambda name: smollm2 if name == embedded.DEFAULT else fetch(name))


@pytest.fixture(scope="module")
def served(smollm2: Path) -> Iterator[str]:
    """The address of an endpoint."""
    with (
        Engine.load(str(smollm2), config=EngineConfig(measure_cost=False)) as engine,
        serving(engine, ServerSettings(model_names=(MODEL,))) as endpoint,
    ):
        yield endpoint.url


@pytest.mark.real_model
@pytest.mark.parametrize("block", [pytest.param(text, id=name) for name, text in blocks("python")])
def test_python_blocks_run(
    block: str, default_model: None, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if SERVED in block:
        block = block.replace(SERVED, request.getfixturevalue("served"))
    exec(compile(block, "README.md", "exec"), {})


@pytest.mark.real_model
@pytest.mark.parametrize(
    "command",
    [
        line
        for line in COMMANDS
        if line.startswith(("agentspec generate", "agentspec replay", "agentspec explain")) and not ABSENT.search(line)
    ],
)
def test_the_readmes_short_commands_run(
    command: str, default_model: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    app(shlex.split(command)[1:], standalone_mode=False)
    assert capsys.readouterr().out.strip()
