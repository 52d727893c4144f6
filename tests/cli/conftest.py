from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from engine_doubles import echo_engine

from agentspec.cli.main import main
from agentspec.local.engine import Engine


@pytest.fixture
def cli() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the real command in an 80 column terminal's width, without colours."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "agentspec", *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", **environment},
        )

    return run


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command in this process, with whatever was patched: exit code, standard output, standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["agentspec", *arguments])
        with pytest.raises(SystemExit) as exit_:
            main()
        return (int(exit_.value.code or 0), *capsys.readouterr())

    monkeypatch.setenv("COLUMNS", "80")
    return run


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Every engine that a command loads answers with the prompt's last line; what was asked of `Engine.load`."""
    asked: list[dict[str, Any]] = []

    def load(
        model: str | None = None, *, draft: str | None = None, speculate: bool = True, tool_format: str | None = None
    ) -> Engine:
        asked.append({"model": model, "draft": draft, "speculate": speculate})
        return echo_engine(speculate=speculate)

    monkeypatch.setattr(Engine, "load", load)
    return asked
