"""An agent of pydantic-ai with two tools and a typed answer: python examples/14_pydantic_ai.py."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel
from pydantic_ai import Agent, RunContext, ToolDefinition
from pydantic_ai.capabilities import PrepareOutputTools, PrepareTools
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
from pydantic_ai.providers.openai import OpenAIProvider
from served import MODEL, City, endpoint, get_time, get_weather


class Report(BaseModel):
    """What was found out."""

    city: City
    rain: bool


# The embedded model is too small to choose, so it has one tool at a time: a larger one needs no capabilities.
def next_tool(context: RunContext[None], tools: list[ToolDefinition]) -> list[ToolDefinition]:
    return tools[_used(context) :][:1]


def then_report(context: RunContext[None], tools: list[ToolDefinition]) -> list[ToolDefinition]:
    return tools if _used(context) == 2 else []


def _used(context: RunContext[None]) -> int:
    return sum(part.part_kind == "tool-return" for message in context.messages for part in message.parts)


async def main() -> None:
    with endpoint() as url:
        agent = Agent(
            OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none")),
            output_type=Report,
            tools=[get_weather, get_time],
            capabilities=[PrepareTools(next_tool), PrepareOutputTools(then_report)],
            model_settings=OpenAIChatModelSettings(max_tokens=64, parallel_tool_calls=False),
        )
        async with agent.run_stream("Do I need an umbrella in Oslo this morning?") as run:
            print(repr(await run.get_output()))
        for message in run.all_messages():
            for part in message.parts:
                print(part.part_kind, getattr(part, "args", getattr(part, "content", "")))


if __name__ == "__main__":
    asyncio.run(main())
