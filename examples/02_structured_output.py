"""An answer as a Python object, held to its class: python examples/02_structured_output.py [--model MODEL]."""

from __future__ import annotations

import argparse
from typing import Literal

from pydantic import BaseModel, Field

from agentspec import ChatAgentSpec


class Ticket(BaseModel):
    """A support ticket."""

    summary: str = Field(max_length=60)
    severity: Literal["low", "medium", "high"]
    needs_human: bool


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", help="folder, hub id, .gguf file or known name; default: the embedded small model")
    model = ChatAgentSpec(model=parser.parse_args().model, max_tokens=64)

    reader = model.with_structured_output(Ticket, include_raw=True)
    answer = reader.invoke("File a ticket: the shop's checkout has been down since noon and customers are calling.")
    stats = answer["raw"].response_metadata["agentspec"]
    print(repr(answer["parsed"]))
    print(f"  {stats['tokens']} tokens, {stats['tokens_per_forward']} per forward")


if __name__ == "__main__":
    main()
