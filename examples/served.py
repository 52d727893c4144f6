"""Where the examples find the endpoint: at AGENTSPEC_URL, or a server that runs as long as the example does.

agentspec serve &
AGENTSPEC_URL=http://127.0.0.1:8000 python examples/10_openai_sdk.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

MODEL = os.environ.get("AGENTSPEC_MODEL", "smollm2-135m")  # what `GET /v1/models` lists
City = Literal["Oslo", "Rome"]


@contextmanager
def endpoint() -> Iterator[str]:
    """The endpoint's address, without the `/v1` of OpenAI's base URLs."""
    if url := os.environ.get("AGENTSPEC_URL"):
        yield url
        return
    command = [sys.executable, "-m", "agentspec", "serve", "--model", MODEL, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield _ready(server)
        finally:
            server.terminate()


def _ready(server: subprocess.Popen[str]) -> str:
    """Wait until it says so."""
    told = ""
    for line in server.stderr or ():
        told += line
        if found := re.search(r"ready .*: base URL (\S+)/v1", told):
            return found[1]
    raise SystemExit(f"the server did not start:\n{told}")


def get_weather(city: City) -> str:
    """Tell the weather in a city."""
    return f"Rain, 7 degrees in {city}."


def get_time(city: City) -> str:
    """Tell the time in a city."""
    return f"It is 9:30 in {city}."
