"""Chat models with the same settings share one engine."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from engine_doubles import ScriptedEngine

from agentspec import ChatAgentSpec
from agentspec.local.engine import Engine


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """What `Engine.load` was called with; it gives engines that say which load they came from."""
    seen: list[dict] = []

    taken = inspect.signature(Engine.load)

    def load(**settings: object) -> Engine:
        seen.append(taken.bind(**settings).arguments)
        time.sleep(0.05)  # long enough for another thread to ask
        return ScriptedEngine(f"load {len(seen)}")

    monkeypatch.setattr(Engine, "load", load)
    return seen


def test_an_engine_is_loaded_at_the_first_call_and_once(loads: list[dict]) -> None:
    models = [ChatAgentSpec(model="a", draft_model="d", temperature=index / 10) for index in range(4)]
    assert loads == []
    answers: list[object] = []
    threads = [threading.Thread(target=lambda m=model: answers.append(m.invoke("hi").content)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["load 1"] * 4
    assert [(load["model"], load["draft"], load["device"]) for load in loads] == [("a", "d", None)]
    models[0].close()
    assert models[1].invoke("hi").content == "load 2"
    models[1].close()


def test_other_settings_are_another_engine(loads: list[dict]) -> None:
    model = ChatAgentSpec(model="a")
    assert [model.invoke("hi").content, model.invoke("hi", model="b").content] == ["load 1", "load 2"]
    assert model.invoke("hi", model="b").response_metadata["model_name"] == "b"
    assert ChatAgentSpec(model="a", device="cpu").invoke("hi").content == "load 3"
    assert model.bind(speculate=False).invoke("hi").content == "load 1"
    for each in (model, ChatAgentSpec(model="b"), ChatAgentSpec(model="a", device="cpu")):
        each.close()


def test_one_model_is_one_engine_whatever_it_is_called(loads: list[dict], tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "m")
    names = [None, "smollm2-135m", str(tmp_path / "m"), f"{tmp_path}/link/", "someone/else"]
    models = [ChatAgentSpec(model=name) for name in names]
    said = [model.invoke("hi").content for model in models]
    for model in models:
        model.close()
    assert said == ["load 1", "load 1", "load 2", "load 2", "load 3"]


FORKED = """
import os, sys, warnings
from agentspec.langchain.shared import EngineRegistry, wait_for

async def seven():
    return 7

warnings.simplefilter("ignore")  # that a process with threads is forked is the point
registry = EngineRegistry()
registry._engines["{}"] = wait_for(seven())
if os.fork() == 0:
    print(wait_for(seven()), registry._engines)
    sys.exit(0)
os.wait()
"""


def test_a_forked_process_has_a_loop_and_engines_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "7 {}\n", "")
