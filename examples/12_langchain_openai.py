"""LangChain's agent with two tools and a typed answer, on ChatOpenAI: python examples/12_langchain_openai.py."""

from __future__ import annotations

from collections.abc import Callable

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, ModelResponse, wrap_model_call
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr
from served import MODEL, City, endpoint, get_time, get_weather


class Report(BaseModel):
    """What was found out."""

    city: City
    rain: bool


@wrap_model_call
def one_tool_a_turn(request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
    """The embedded model is too small to choose: a larger one needs no middleware."""
    request = request.override(model_settings={"parallel_tool_calls": False})
    used = sum(isinstance(message, ToolMessage) for message in request.messages)
    if used < len(request.tools):
        return handler(request.override(tools=[request.tools[used]], response_format=None, tool_choice="any"))
    return handler(request.override(tools=[]))


def main() -> None:
    with endpoint() as url:
        model = ChatOpenAI(model=MODEL, base_url=f"{url}/v1", api_key=SecretStr("none"), max_tokens=64)
        tools = [get_weather, get_time]
        agent = create_agent(model, tools, middleware=[one_tool_a_turn], response_format=ToolStrategy(Report))
        state = agent.invoke({"messages": [("user", "Do I need an umbrella in Oslo this morning?")]})
        for message in state["messages"]:
            message.pretty_print()
        print(repr(state["structured_response"]))


if __name__ == "__main__":
    main()
