"""A coding agent mends a file in a temporary folder: it reads it, writes it again, and runs its tests.

It works twice, with drafts and without, and has to come to the same transcript, to the character. The tests run what
the model wrote, as you: with a model of your own, mind what you ask for.

python examples/07_coding_agent.py [--model qwen2.5-coder-1.5b] [--record TRACE]
"""

from __future__ import annotations

import argparse
import difflib
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, wrap_model_call
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import GraphRecursionError
from pydantic import Field

from agentspec import ChatAgentSpec
from agentspec.integrations.langchain import record

WRONG, RIGHT = "price * (1 + percent / 100)", "price * (1 - percent / 100)"
PRICES = f'''"""Prices of a shop."""


def discounted(price: float, percent: float) -> float:
    """The price less so many percent of it."""
    return {WRONG}


def total(prices: list[float]) -> float:
    """The sum of some prices."""
    return round(sum(prices), 2)
'''
TESTS = """from prices import discounted, total

assert total([1.5, 2.25]) == 3.75
for price, percent, right in ((100, 10, 90), (80, 25, 60)):
    found = discounted(price, percent)
    assert found == right, f"discounted({price}, {percent}) is {found}, not {right}"
"""
TASK = (
    "The tests of prices.py fail. Read the file, write it again with the bug fixed, and run the tests. "
    "When they pass, finish with one sentence on what you found."
)
VERSIONS = [PRICES.replace(WRONG, each) for each in ("price - percent", "price * percent / 100", RIGHT)]
SUMMARIES = ["All tests pass.", "Some tests still fail."]
AFTER = {"read_file": "write_file", "write_file": "run_tests", "run_tests": "read_file"}
PASSED = "all tests pass"
MOST_STEPS = 24


def tools_in(folder: Path) -> list[BaseTool]:
    @tool
    def read_file(path: Literal["prices.py", "test_prices.py"]) -> str:
        """Read a file."""
        return (folder / path).read_text()

    @tool
    def write_file(path: Literal["prices.py"], content: str) -> str:
        """Write a whole file."""
        (folder / path).write_text(content)
        return "written"

    @tool
    def run_tests() -> str:
        """Run the tests."""
        command = [sys.executable, "-B", "test_prices.py"]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=30)
        except subprocess.TimeoutExpired:
            return "failed: they did not end"
        return f"failed: {done.stderr.strip().splitlines()[-1]}" if done.returncode else PASSED

    @tool(return_direct=True)
    def finish(summary: Annotated[str, Field(max_length=120)]) -> str:
        """End the work, and say what you found."""
        return summary

    return [read_file, write_file, run_tests, finish]


def calls_in(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    return [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]


def next_step(messages: Sequence[AnyMessage], *, small: bool) -> str:
    """Which tool has to be called; "any" leaves it to the model. The small one is told all of its steps."""
    calls = [(call["name"], call["args"]) for call in calls_in(messages)]
    if messages[-1].content == PASSED:
        return "finish"
    names = [name for name, _ in calls]
    if small:
        return "read_file" if not names else "run_tests" if names[-1] == "write_file" else "write_file"
    if len(calls) < 2 or calls[-1] != calls[-2]:
        return "any"
    return AFTER[names[-1]]  # it goes round in circles


def held(tool: BaseTool | dict[str, Any], messages: Sequence[AnyMessage]) -> dict[str, Any]:
    """What the small model may write: versions of the file not yet tried, and a few sentences."""
    found = convert_to_openai_tool(tool)
    name, arguments = found["function"]["name"], found["function"]["parameters"]["properties"]
    tried = [call["args"].get("content") for call in calls_in(messages)]
    if name == "write_file":
        arguments["content"]["enum"] = [each for each in VERSIONS if each not in tried]
    if name == "finish":
        arguments["summary"]["enum"] = SUMMARIES
    return found


def guide(*, small: bool) -> AgentMiddleware:
    """Each answer is one call; the tool that ends the work is there when the tests pass."""

    @wrap_model_call
    def guided(request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        step = next_step(request.messages, small=small)
        tools = request.tools if step == "finish" else request.tools[:-1]
        given: list[BaseTool | dict[str, Any]] = [held(each, request.messages) if small else each for each in tools]
        return handler(request.override(tools=given, tool_choice=step, model_settings={"parallel_tool_calls": False}))

    return guided


def work(model: ChatAgentSpec, callbacks: list[BaseCallbackHandler], *, small: bool) -> Iterator[AnyMessage]:
    """What the agent says and is told, as it comes."""
    config: RunnableConfig = {
        "callbacks": callbacks,
        "recursion_limit": MOST_STEPS,
        "metadata": {"thread_id": "prices"},
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "prices.py").write_text(PRICES)
        (folder / "test_prices.py").write_text(TESTS)
        agent = create_agent(model, tools_in(folder), middleware=[guide(small=small)])
        try:
            for update in agent.stream({"messages": [HumanMessage(TASK)]}, config, stream_mode="updates"):
                for state in update.values():
                    yield from state["messages"]
        except GraphRecursionError:
            print(f"(it did not come to an end within {MOST_STEPS} steps)")


def show(message: AnyMessage, file: str) -> str:
    """Print a message, and what it writes as a difference to the file so far; gives the file as it is then."""
    if not isinstance(message, AIMessage):
        print(textwrap.indent(message.text.strip(), "  | ", lambda line: True))
        return file
    for call in message.tool_calls:
        written = call["args"].get("content", file)
        shown = [f"{name}={'...' if len(str(value)) > 40 else value}" for name, value in call["args"].items()]
        print(f"> {call['name']}({', '.join(shown)})")
        lines = difflib.ndiff(file.splitlines(), written.splitlines())
        print(*(f"  {line}\n" for line in lines if line[0] in "+-"), sep="", end="")
        file = written
    if message.text:
        print(textwrap.fill(message.text, 80))
    stats = message.response_metadata["agentspec"]
    print(f"  ({stats['tokens']} tokens, {stats['tokens_per_forward']:.1f} per forward)")
    return file


def transcript(messages: list[AnyMessage]) -> list[tuple[str, str, list[tuple[str, Any]]]]:
    """All but the calls' ids, which are new each time."""
    return [
        (message.type, message.text, [(call["name"], call["args"]) for call in getattr(message, "tool_calls", ())])
        for message in messages
    ]


def figures(messages: list[AnyMessage]) -> tuple[int, int, float]:
    """Tokens, forwards, and tokens per second, each answer from its first token to its last."""
    stats = [message.response_metadata["agentspec"] for message in messages if isinstance(message, AIMessage)]
    tokens, forwards, ms = (sum(each[name] for each in stats) for name in ("tokens", "forwards", "decode_ms"))
    return tokens, forwards, 1000 * (tokens - len(stats)) / ms


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", help="folder, hub id, .gguf file or known name; default: the embedded small model")
    parser.add_argument("--record", metavar="TRACE", help="append the work to this file, for `agentspec replay TRACE`")
    given = parser.parse_args()
    callbacks: list[BaseCallbackHandler] = [record(given.record)] if given.record else []

    print(textwrap.fill(TASK, 80), end="\n\n")
    found: dict[str, list[AnyMessage]] = {}
    file = PRICES
    for name, speculate in (("speculative", True), ("plain", False)):
        # Both share one engine; with a caller each, so that no answer is drafted from the other's.
        model = ChatAgentSpec(model=given.model, max_tokens=512, speculate=speculate, caller=name)
        found[name] = []
        if not speculate:
            print("\nNow all of it once more without drafts, shown in figures alone ...", flush=True)
        for message in work(model, callbacks if speculate else [], small=given.model is None):
            found[name].append(message)
            if speculate:
                file = show(message, file)

    print(f"\n{'':12}  tokens  forwards  tokens/s")
    for name, messages in found.items():
        tokens, forwards, speed = figures(messages)
        print(f"{name:12}  {tokens:6}  {forwards:8}  {speed:8.1f}")
    assert transcript(found["speculative"]) == transcript(found["plain"]), "drafts changed the transcript"
    print(f"Both transcripts are the same: {len(found['plain'])} messages.")


if __name__ == "__main__":
    main()
