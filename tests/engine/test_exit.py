"""Python can be left while an engine is at work."""

import subprocess
import sys

PROGRAM = """
from agentspec.config import EngineConfig, SamplingParams
from agentspec.engine.core import EngineCore
from agentspec.engine.request import Order
from agentspec.engine.worker import EngineWorker
from agentspec.models.toy import tiny_target
from agentspec.proposers.base import Off
from agentspec.testing import FixedController

worker = EngineWorker(EngineCore(tiny_target(), Off(), controller=FixedController(0), config=EngineConfig()))
worker.submit(Order(prompt=[1, 2, 3], params=SamplingParams(seed=0, max_tokens=1500)))
"""


def test_leaving_python_with_a_request_running_is_no_crash() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
