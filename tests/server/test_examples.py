"""Real clients, each as an example, on the embedded model: every agent ends, and has called both of its tools."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CLIENTS = sorted(path.name for path in EXAMPLES.glob("1[0-9]_*.py"))


@pytest.mark.real_model
@pytest.mark.parametrize("name", CLIENTS)
def test_an_agent_of_two_tools_ends(endpoint, name):
    environment = {**os.environ, "AGENTSPEC_URL": endpoint.url, "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, name], cwd=EXAMPLES, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.find("Rain, 7 degrees"), done.stdout.find("It is 9:30")
    assert 0 <= first < second, done.stdout
    assert done.stdout[second:].strip().count("\n") >= 1
