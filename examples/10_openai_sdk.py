"""An agent with two tools on the openai SDK, streamed, typed, and by Responses: python examples/10_openai_sdk.py."""

from __future__ import annotations

import json
from typing import Any

from openai import OpenAI, pydantic_function_tool
from pydantic import BaseModel
from served import MODEL, City, endpoint, get_time, get_weather


class GetWeather(BaseModel):
    """Tell the weather in a city."""

    city: City


class GetTime(BaseModel):
    """Tell the time in a city."""

    city: City


class Report(BaseModel):
    """What was found out."""

    city: City
    rain: bool


RUN = {"get_weather": get_weather, "get_time": get_time}
TOOLS = [pydantic_function_tool(kind, name=name) for kind, name in ((GetWeather, "get_weather"), (GetTime, "get_time"))]


def agent(client: OpenAI) -> list[Any]:
    """A turn for each tool, then one to answer; a model of some size is left to choose: tool_choice="auto"."""
    messages: list[Any] = [{"role": "user", "content": "Do I need an umbrella in Oslo this morning?"}]
    for name in RUN:
        choice = {"type": "function", "function": {"name": name}}
        with client.chat.completions.stream(
            model=MODEL, messages=messages, tools=TOOLS, tool_choice=choice, max_tokens=64
        ) as stream:
            for event in stream:
                if event.type == "tool_calls.function.arguments.delta":
                    print(event.arguments_delta, end="", flush=True)
            message = stream.get_final_completion().choices[0].message
        messages.append(message.to_dict())
        for call in message.tool_calls or []:
            result = RUN[call.function.name](**json.loads(call.function.arguments))
            print(f" -> {result}")
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return messages


def main() -> None:
    with endpoint() as url, OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        messages = agent(client)
        for chunk in client.chat.completions.create(model=MODEL, messages=messages, max_tokens=24, stream=True):
            print(chunk.choices[0].delta.content or "", end="", flush=True)
        print()
        typed = client.chat.completions.parse(model=MODEL, messages=messages, response_format=Report, max_tokens=64)
        print(repr(typed.choices[0].message.parsed))

        first = client.responses.create(model=MODEL, input="Name a city.", max_output_tokens=12)
        print(first.output_text)
        with client.responses.stream(
            model=MODEL, input="And another?", previous_response_id=first.id, max_output_tokens=12
        ) as stream:
            print("".join(event.delta for event in stream if event.type == "response.output_text.delta"))


if __name__ == "__main__":
    main()
