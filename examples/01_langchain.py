"""Two turns of an agent with LangChain: python examples/01_langchain.py [--model MODEL]."""

from __future__ import annotations

import argparse

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool

from agentspec import ChatAgentSpec


@tool
def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"The weather in {city} is rainy, at 7 degrees."


def show(message: AIMessage) -> None:
    stats = message.response_metadata["agentspec"]
    print(message.text or [(call["name"], call["args"]) for call in message.tool_calls])
    print(f"  {stats['tokens']} tokens, {stats['tokens_per_forward']} per forward")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", help="folder, hub id, .gguf file or known name; default: the embedded small model")
    model = ChatAgentSpec(model=parser.parse_args().model, max_tokens=64)

    messages: list[BaseMessage] = [HumanMessage("What is the weather in Oslo?")]
    call = model.bind_tools([weather], tool_choice="any", parallel_tool_calls=False).invoke(messages)
    show(call)
    messages += [call, *(weather.invoke(each) for each in call.tool_calls)]
    show(model.bind_tools([weather]).invoke(messages))


if __name__ == "__main__":
    main()
