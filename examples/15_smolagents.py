"""An agent of smolagents with two tools: python examples/15_smolagents.py."""

from __future__ import annotations

from typing import Literal

from served import MODEL, City, endpoint, get_time, get_weather
from smolagents import ActionStep, OpenAIModel, ToolCallingAgent, tool


@tool
def weather(city: City) -> str:
    """Tell the weather in a city.

    Args:
        city: Where.
    """
    return get_weather(city)


@tool
def time(city: City) -> str:
    """Tell the time in a city.

    Args:
        city: Where.
    """
    return get_time(city)


@tool
def final_answer(answer: Literal["take an umbrella", "leave it"]) -> str:
    """Tell the user, and end.

    Args:
        answer: What to do.
    """
    return answer


TOOLS = [weather, time, final_answer]


def next_tool(step: ActionStep, agent: ToolCallingAgent) -> None:
    """The embedded model is too small to choose, so it has one tool at a time: a larger one needs no callback."""
    agent.tools = {each.name: each for each in TOOLS[step.step_number :][:1]}


def main() -> None:
    with endpoint() as url:
        model = OpenAIModel(MODEL, api_base=f"{url}/v1", api_key="none", max_tokens=64, parallel_tool_calls=False)
        agent = ToolCallingAgent(TOOLS, model, max_steps=4, stream_outputs=True, step_callbacks=[next_tool])
        agent.tools = {"weather": weather}
        print(agent.run("Do I need an umbrella in Oslo this morning?"))


if __name__ == "__main__":
    main()
