"""An agent that waits for leave, and goes on from its checkpoint without reading its prompt again.

python examples/06_resume.py [--model MODEL]
"""

from __future__ import annotations

import argparse
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from agentspec import ChatAgentSpec


@tool
def restart(service: Literal["mail", "shop", "wiki"]) -> str:
    """Restart a service."""
    return f"{service} runs again."


def agent(model: ChatAgentSpec, saver: InMemorySaver) -> Any:  # noqa: ANN401 (LangGraph's type has five parameters)
    caller = model.bind_tools([restart], tool_choice="any", parallel_tool_calls=False)
    teller = model.bind_tools([restart], parallel_tool_calls=False)
    graph = StateGraph(MessagesState)
    graph.add_node("plan", lambda state: {"messages": [caller.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([restart]))
    graph.add_node("tell", lambda state: {"messages": [teller.invoke(state["messages"])]})
    for begin, end in ((START, "plan"), ("plan", "tools"), ("tools", "tell"), ("tell", END)):
        graph.add_edge(begin, end)
    return graph.compile(checkpointer=saver, interrupt_before=["tools"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", help="folder, hub id, .gguf file or known name; default: the embedded small model")
    model = ChatAgentSpec(model=parser.parse_args().model, max_tokens=48)
    saver = InMemorySaver()
    thread: RunnableConfig = {"configurable": {"thread_id": "1"}}

    waiting = agent(model, saver).invoke({"messages": [("user", "The shop is down. Restart it.")]}, thread)
    call = waiting["messages"][-1]
    print("may I?", [(each["name"], each["args"]) for each in call.tool_calls])

    done = agent(model, saver).invoke(None, thread)["messages"]  # another agent, with what the checkpoint holds
    print("done:", done[-2].content)
    print(done[-1].text or [(each["name"], each["args"]) for each in done[-1].tool_calls])
    usage = done[-1].usage_metadata
    read = usage["input_token_details"]["cache_read"]
    print(f"   prompt of {usage['input_tokens']} tokens, {read} of them read before the agent waited")
    assert read > call.usage_metadata["input_tokens"] / 2, "the checkpoint's prompt was computed again"


if __name__ == "__main__":
    main()
