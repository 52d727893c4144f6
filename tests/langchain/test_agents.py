"""LangGraph's agents on our chat model: the real graph, engine, grammar and parser; a script in the model's place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from engine_doubles import scripted_engine
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import BaseModel

from agentspec import ChatAgentSpec

ASK: Any = {"messages": [HumanMessage("What to take to Oslo?")]}


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"{city}: rain"


class Advice(BaseModel):
    """What to take."""

    umbrella: bool
    why: str


class Verdict(BaseModel):
    fine: bool


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def script(*turns: str) -> Callable[[str], str]:
    """One answer after the other: which one it is shows in the number of tool results."""
    return lambda prompt: turns[prompt.count("user: <tool_response>")]


async def test_a_react_agent_uses_what_the_tool_said() -> None:
    with scripted_engine(script(call("weather", '{"city": "Oslo"}'), "An umbrella.")) as engine:
        agent = create_agent(ChatAgentSpec(engine=engine), [weather])
        for state in (agent.invoke(ASK), await agent.ainvoke(ASK)):
            kinds = [type(message).__name__ for message in state["messages"]]
            assert kinds == ["HumanMessage", "AIMessage", "ToolMessage", "AIMessage"]
            assert [state["messages"][2].content, state["messages"][3].content] == ["Oslo: rain", "An umbrella."]


def test_a_tool_node_runs_the_parallel_calls_of_one_answer() -> None:
    both = call("weather", '{"city": "Oslo"}') + "\n" + call("weather", '{"city": "Lima"}')
    with scripted_engine(lambda prompt: "Two umbrellas." if "Lima: rain" in prompt else both) as engine:
        model = ChatAgentSpec(engine=engine).bind_tools([weather])
        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
        graph.add_node("tools", ToolNode([weather]))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        messages = graph.compile().invoke(ASK)["messages"]
    told = [message for message in messages if isinstance(message, ToolMessage)]
    assert [message.content for message in told] == ["Oslo: rain", "Lima: rain"]
    assert [message.tool_call_id for message in told] == [each["id"] for each in messages[1].tool_calls]
    assert messages[-1].content == "Two umbrellas."


@pytest.mark.parametrize(
    "strategy", [Advice, ProviderStrategy(Advice), ToolStrategy(Advice)], ids=lambda s: type(s).__name__
)
def test_the_final_answer_is_structured(strategy: Any) -> None:
    advice = '{"umbrella": true, "why": "Rain."}'
    last = call("Advice", advice) if isinstance(strategy, ToolStrategy) else advice
    with scripted_engine(script(call("weather", '{"city": "Oslo"}'), last)) as engine:
        agent = create_agent(ChatAgentSpec(engine=engine), [weather], response_format=strategy)
        state = agent.invoke(ASK)
    assert state["messages"][2].content == "Oslo: rain"
    assert state["structured_response"] == Advice(umbrella=True, why="Rain.")


def test_a_final_answer_that_is_no_call_is_held_to_the_response_format() -> None:
    with scripted_engine("I would say no.") as engine:  # which neither a call nor the document begins with
        model = ChatAgentSpec(engine=engine, bad_words=["<"])
        state = create_agent(model, [weather], response_format=ProviderStrategy(Verdict, strict=True)).invoke(ASK)
    assert state["structured_response"] == Verdict(fine=False)


def test_tokens_and_calls_are_streamed_through_the_graph() -> None:
    with scripted_engine(script(call("weather", '{"city": "Oslo"}'), "Take a large umbrella.")) as engine:
        agent = create_agent(ChatAgentSpec(engine=engine, speculate=False), [weather])
        pieces = [piece for piece, _ in agent.stream(ASK, stream_mode="messages")]
    chunks = [piece for piece in pieces if isinstance(piece, AIMessageChunk)]
    args = [each["args"] for chunk in chunks for each in chunk.tool_call_chunks]
    texts = [chunk.content for chunk in chunks if chunk.content]
    assert "".join(args) == '{"city": "Oslo"}'
    assert "".join(texts) == "Take a large umbrella."
    assert len(args) > 5
    assert len(texts) > 5


def test_a_call_that_was_cut_is_not_run() -> None:
    ran: list[str] = []

    @tool
    def delete(path: str) -> str:
        """Delete a file."""
        ran.append(path)
        return "gone"

    reply = call("delete", '{"path": "/tmp/scratch/old"}')
    with scripted_engine(reply) as engine:
        for streaming in (False, True):
            model = ChatAgentSpec(engine=engine, max_tokens=reply.index("/scratch"), streaming=streaming)
            last = create_agent(model, [delete]).invoke(ASK)["messages"][-1]
            assert (last.tool_calls, last.response_metadata["finish_reason"]) == ([], "length")
            assert last.invalid_tool_calls[0]["args"].startswith('{"path": "/tmp')
    assert ran == []


def test_a_resumed_thread_finds_its_prompt_in_the_cache() -> None:
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "1"}}
    with scripted_engine(script(call("weather", '{"city": "Oslo"}'), "An umbrella.")) as engine:

        def agent() -> Any:
            return create_agent(ChatAgentSpec(engine=engine), [weather], checkpointer=saver, interrupt_before=["tools"])

        asked = agent().invoke(ASK, config)["messages"][-1]
        assert asked.tool_calls
        answered = agent().invoke(None, config)["messages"][-1]  # another agent, as after a restart of the program
    assert answered.content == "An umbrella."
    assert answered.usage_metadata["input_token_details"]["cache_read"] == asked.usage_metadata["input_tokens"]
    assert isinstance(answered, AIMessage)
