"""A server of its own for a measurement, and what it holds of memory."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVED = "model"


@contextmanager
def server(model: str, *options: str) -> Iterator[tuple[str, int]]:
    """The base URL and the process id of a server of this model."""
    command = [sys.executable, "-m", "agentspec", "serve", "--model", model, "--served-name", SERVED, "--port", "0"]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as process:
        try:
            told = ""
            for line in process.stderr or ():
                told += line
                if ready := re.search(r"ready after .*: base URL (\S+)", told):
                    yield ready[1], process.pid
                    return
            raise SystemExit(f"the server did not start:\n{told}")
        finally:
            process.terminate()


def memory_mib(process: int) -> float:
    """Resident memory of a process."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1024
