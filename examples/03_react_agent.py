"""A ReAct agent that looks before it answers, streamed: python examples/03_react_agent.py [--model MODEL]."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Literal

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, ModelResponse, wrap_model_call
from langchain_core.messages import AIMessageChunk, ToolMessage
from langchain_core.tools import tool

from agentspec import ChatAgentSpec


@tool
def weather(city: Literal["Bergen", "Lima", "Oslo"]) -> str:
    """Tell the weather in a city."""
    return f"The weather in {city} is rainy, at 7 degrees."


@wrap_model_call
def look_once(request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
    """The embedded model is too small to know when to look: a larger one needs no middleware."""
    looked = any(isinstance(message, ToolMessage) for message in request.messages)
    settings = {"parallel_tool_calls": False}
    return handler(request.override(tool_choice="none" if looked else "any", model_settings=settings))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", help="folder, hub id, .gguf file or known name; default: the embedded small model")
    name = parser.parse_args().model
    model = ChatAgentSpec(model=name, max_tokens=64)
    agent = create_agent(model, [weather], middleware=[] if name else [look_once])

    question = {"messages": [("user", "Do I need an umbrella in Oslo?")]}
    for piece, _ in agent.stream(question, stream_mode="messages"):
        if isinstance(piece, ToolMessage):
            print(f"\n-> {piece.content}")
        elif isinstance(piece, AIMessageChunk):
            print(
                piece.text, *(f"{each['name'] or ''}{each['args']}" for each in piece.tool_call_chunks), sep="", end=""
            )
            if stats := piece.response_metadata.get("agentspec"):
                print(f"\n   {stats['tokens']} tokens, {stats['tokens_per_forward']} per forward")


if __name__ == "__main__":
    main()
