"""One answer's calls, run at the same time by ToolNode: python examples/04_parallel_tools.py [--model MODEL]."""

from __future__ import annotations

import argparse
import time
from typing import Literal

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from agentspec import ChatAgentSpec


@tool
def population(city: Literal["Bergen", "Lima", "Oslo"]) -> str:
    """Look up how many people live in a city."""
    time.sleep(0.5)
    return f"{city}: { ({'Bergen': '290,000', 'Lima': '10,000,000', 'Oslo': '720,000'}[city]) } people"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", help="folder, hub id, .gguf file or known name; default: the embedded small model")
    model = ChatAgentSpec(model=parser.parse_args().model, max_tokens=96)
    caller = model.bind_tools([population], tool_choice="any")
    teller = model.bind_tools([population], tool_choice="none")

    graph = StateGraph(MessagesState)
    graph.add_node("look", lambda state: {"messages": [caller.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([population]))
    graph.add_node("tell", lambda state: {"messages": [teller.invoke(state["messages"])]})
    for begin, end in ((START, "look"), ("look", "tools"), ("tools", "tell"), ("tell", END)):
        graph.add_edge(begin, end)

    for update in graph.compile().stream({"messages": [("user", "Which is larger, Oslo or Lima?")]}):
        for node, state in update.items():
            print(f"-- {node}")
            for message in state["messages"]:
                print(message.text or [(call["name"], call["args"]) for call in message.tool_calls])
                if isinstance(message, AIMessage):
                    stats = message.response_metadata["agentspec"]
                    print(f"   {stats['tokens']} tokens, {stats['tokens_per_forward']} per forward")


if __name__ == "__main__":
    main()
