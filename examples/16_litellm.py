"""An agent with two tools on litellm, streamed: python examples/16_litellm.py."""

from __future__ import annotations

import json
import os
from typing import Any

from served import MODEL, endpoint, get_time, get_weather

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else importing litellm asks the network for prices

import litellm

RUN = {"get_weather": get_weather, "get_time": get_time}
CITY = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": CITY}} for name in RUN]


def turn(url: str, messages: list[Any], **options: Any) -> Any:  # noqa: ANN401
    """One answer, put together from its chunks."""
    chunks = litellm.completion(
        f"openai/{MODEL}", messages, api_base=f"{url}/v1", api_key="none", stream=True, max_tokens=32, **options
    )
    return litellm.stream_chunk_builder(list(chunks), messages).choices[0].message


def main() -> None:
    litellm.telemetry, litellm.suppress_debug_info = False, True
    messages: list[Any] = [{"role": "user", "content": "Do I need an umbrella in Oslo this morning?"}]
    with endpoint() as url:
        for name in RUN:  # a model of some size is left to choose: tool_choice="auto"
            message = turn(url, messages, tools=TOOLS, tool_choice={"type": "function", "function": {"name": name}})
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                result = RUN[call.function.name](**json.loads(call.function.arguments))
                print(call.function.name, call.function.arguments, "->", result)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        print(turn(url, messages, tools=TOOLS, tool_choice="none").content)


if __name__ == "__main__":
    main()
