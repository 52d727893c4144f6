"""An agent of openai-agents with two tools and a last one, over both APIs: python examples/13_openai_agents.py."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from agents import Agent, ModelSettings, RunContextWrapper, Runner, StopAtTools, function_tool, set_tracing_disabled
from agents.agent import AgentBase
from agents.models.interface import Model
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import OpenAIResponsesModel
from openai import AsyncOpenAI
from served import MODEL, City, endpoint, get_time, get_weather


@dataclass
class Notes:
    """What was found out so far."""

    found: list[str] = field(default_factory=list)


def _after(steps: int):  # noqa: ANN202
    """The embedded model is too small to choose, so it has one tool at a time: a larger one needs no `is_enabled`."""

    def is_enabled(context: RunContextWrapper[Notes], agent: AgentBase) -> bool:
        return len(context.context.found) == steps

    return is_enabled


@function_tool(is_enabled=_after(0))
def weather(context: RunContextWrapper[Notes], city: City) -> str:
    """Tell the weather in a city."""
    context.context.found.append(get_weather(city))
    return context.context.found[-1]


@function_tool(is_enabled=_after(1))
def time(context: RunContextWrapper[Notes], city: City) -> str:
    """Tell the time in a city."""
    context.context.found.append(get_time(city))
    return context.context.found[-1]


@function_tool(is_enabled=_after(2))
def report(city: City, rain: bool) -> str:
    """Tell the user."""
    return f"It {'rains' if rain else 'is dry'} in {city}."


async def forecast(model: Model) -> None:
    agent = Agent[Notes](
        name="forecaster",
        instructions="Use the tools, then report.",
        model=model,
        model_settings=ModelSettings(tool_choice="required", parallel_tool_calls=False, max_tokens=64),
        tools=[weather, time, report],
        reset_tool_choice=False,
        tool_use_behavior=StopAtTools(stop_at_tool_names=["report"]),
    )
    run = Runner.run_streamed(agent, "Do I need an umbrella in Oslo this morning?", context=Notes())
    async for event in run.stream_events():
        if event.type == "run_item_stream_event":
            print(event.name, getattr(event.item, "output", ""))
    print(run.final_output)


async def main() -> None:
    set_tracing_disabled(True)
    with endpoint() as url:
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
            for api in (OpenAIResponsesModel, OpenAIChatCompletionsModel):  # both of OpenAI's APIs are served
                await forecast(api(MODEL, client))


if __name__ == "__main__":
    asyncio.run(main())
