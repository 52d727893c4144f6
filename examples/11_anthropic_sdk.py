"""An agent with two tools on the anthropic SDK, streamed: python examples/11_anthropic_sdk.py."""

from __future__ import annotations

from typing import Any

from anthropic import Anthropic
from served import MODEL, endpoint, get_time, get_weather

RUN = {"get_weather": get_weather, "get_time": get_time}
CITY = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]}}, "required": ["city"]}
TOOLS: list[Any] = [{"name": name, "description": run.__doc__, "input_schema": CITY} for name, run in RUN.items()]


def main() -> None:
    messages: list[Any] = [{"role": "user", "content": "Do I need an umbrella in Oslo this morning?"}]
    with endpoint() as url, Anthropic(base_url=url, api_key="none") as client:
        for name in RUN:  # a model of some size is left to choose: {"type": "auto"}
            choice: Any = {"type": "tool", "name": name}
            with client.messages.stream(
                model=MODEL, max_tokens=64, messages=messages, tools=TOOLS, tool_choice=choice
            ) as stream:
                answer = stream.get_final_message()
            messages.append({"role": "assistant", "content": answer.content})
            results = []
            for block in answer.content:
                if block.type == "tool_use":
                    result = RUN[block.name](**block.input)
                    print(block.name, block.input, "->", result)
                    results.append({"type": "tool_result", "tool_use_id": block.id, "content": result})
            messages.append({"role": "user", "content": results})

        with client.messages.stream(
            model=MODEL, max_tokens=24, messages=messages, tools=TOOLS, tool_choice={"type": "none"}
        ) as stream:
            for text in stream.text_stream:
                print(text, end="", flush=True)
        print()


if __name__ == "__main__":
    main()
