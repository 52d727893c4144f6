"""A model that is not there is told of before anything large is imported."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from agentspec.cli.main import main
try:
    main()
finally:
    print(sorted({"torch", "transformers"} & set(sys.modules)))
"""


@pytest.mark.parametrize("command", ["generate", "explain"])
@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("missing/name", "missing/name is no folder here and not in the hub's cache, and the hub can't be asked"),
        ("./missing", "model folder ./missing does not exist"),
        ("missing", "no model is called 'missing'"),
        ("missing.gguf", "there is no file missing.gguf"),
    ],
)
def test_a_missing_model_is_told_without_torch(monkeypatch, command, model, told) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    arguments = [sys.executable, "-c", PROGRAM, command, "--model", model, "hi"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout) == (2, "[]\n"), done.stderr
    assert f"error: {told}" in done.stderr
