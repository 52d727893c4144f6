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


FORKED = """
import os, sys, warnings
from agentspec.errors import EngineError
from agentspec.engine.thread import MODEL_THREAD

warnings.simplefilter("ignore")  # that a process with threads is forked is the point
if os.fork() == 0:
    ticket = tickets[0]
    for refused in (ticket.check, lambda: worker.submit(ORDER)):
        try:
            refused()
        except EngineError as error:
            print(error)
    ticket.cancel()
    worker.close()
    print(MODEL_THREAD.call(lambda: "a thread of its own"))
    sys.exit(0)
os.wait()
worker.close()
"""


def test_a_forked_process_is_refused_the_engine_and_ends() -> None:
    program = PROGRAM.replace("worker.submit(", "tickets = [worker.submit(").replace("1500)))", "1500)))]")
    order = "ORDER = Order(prompt=[1], params=SamplingParams(seed=0, max_tokens=1))\n"
    done = subprocess.run([sys.executable, "-c", program + order + FORKED], capture_output=True, text=True, timeout=60)
    refusal = "the engine belongs to the process before the fork: load another one\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, 2 * refusal + "a thread of its own\n", "")
