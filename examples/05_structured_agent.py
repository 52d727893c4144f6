"""An agent whose last answer is a Python object: python examples/05_structured_agent.py [--model MODEL]."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Literal

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, ModelResponse, wrap_model_call
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel, Field

from agentspec import ChatAgentSpec


class Verdict(BaseModel):
    """Whether to reorder."""

    part: Literal["bolt", "nut"]
    reorder: bool
    reason: str = Field(max_length=40)


@tool
def stock(part: Literal["bolt", "nut"]) -> str:
    """Look up how many of a part are left."""
    return f"{part}: { ({'bolt': 3, 'nut': 4000}[part]) } left, and 100 are needed each day."


@wrap_model_call
def look_once(request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
    """The embedded model is too small to know when to look: a larger one needs no middleware."""
    looked = any(isinstance(message, ToolMessage) for message in request.messages)
    settings = {"parallel_tool_calls": False, "tool_choice": "none" if looked else "any"}
    return handler(request.override(model_settings=settings))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", help="folder, hub id, .gguf file or known name; default: the embedded small model")
    name = parser.parse_args().model
    model = ChatAgentSpec(model=name, max_tokens=96)
    agent = create_agent(model, [stock], response_format=Verdict, middleware=[] if name else [look_once])

    state = agent.invoke({"messages": [("user", "Should we reorder bolts?")]})
    for message in state["messages"]:
        print(message.text or [(call["name"], call["args"]) for call in message.tool_calls])
        if isinstance(message, AIMessage):
            stats = message.response_metadata["agentspec"]
            print(f"   {stats['tokens']} tokens, {stats['tokens_per_forward']} per forward")
    print(repr(state["structured_response"]))


if __name__ == "__main__":
    main()
