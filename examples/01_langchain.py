"""A tool call and an answer with LangChain: python examples/01_langchain.py [--model MODEL]."""

from __future__ import annotations

import argparse

from langchain_core.messages import AIMessage

from agentspec import ChatAgentSpec


def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"Rain in {city}, 7 degrees."


def show(message: AIMessage) -> None:
    stats = message.response_metadata["agentspec"]
    print(message.content or [(call["name"], call["args"]) for call in message.tool_calls])
    print(f"  {stats['tokens']} tokens, {stats['tokens_per_forward']} per forward")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", help="folder, hub id, .gguf file or known name; default: the embedded small model")
    model = ChatAgentSpec(model=parser.parse_args().model, max_tokens=48)

    show(model.bind_tools([weather], tool_choice="any").invoke("What is the weather in Oslo?"))
    show(model.invoke("Name three fruits."))


if __name__ == "__main__":
    main()
