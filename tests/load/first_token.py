"""How long the first token of an agent's next turn takes: python tests/load/first_token.py [--model M] [--history N].

A conversation of some length is gone on with; then the same turn is asked in a conversation that the server has not
seen. Exits with 1 if the first is not at least five times as fast.
"""

from __future__ import annotations

import argparse
import json
import statistics
from time import perf_counter
from typing import Any

from load_server import SERVED, server
from openai import OpenAI

TARGET = 5.0
TURN_TOKENS = 38
TURN = (
    "The build failed in step {}: module parser, line {}, an unexpected indent after the loop; I changed it and ran it."
)


def conversation(name: str, tokens: int) -> list[Any]:
    """About as many tokens of history, like no other's from the first message on."""
    said = [TURN.format(place, 7 * place) for place in range(1, tokens // TURN_TOKENS + 1)]
    messages = [{"role": "user" if place % 2 else "assistant", "content": text} for place, text in enumerate(said, 1)]
    return [{"role": "system", "content": f"{name} is the project's name. You help to repair it."}, *messages]


def ask(client: OpenAI, messages: list[Any]) -> tuple[float, str, int]:
    """Seconds until something of the answer is there, the answer, and the prompt's tokens."""
    began, first, text, tokens = perf_counter(), 0.0, "", 0
    for chunk in client.chat.completions.create(
        model=SERVED, messages=messages, max_tokens=8, stream=True, stream_options={"include_usage": True}
    ):
        tokens = chunk.usage.prompt_tokens if chunk.usage else 0
        more = chunk.choices[0].delta.content if chunk.choices else None
        if more:
            first = first or perf_counter() - began
            text += more
    return first, text, tokens


def measure(url: str, *, history: int, runs: int) -> dict[str, Any]:
    warm, cold, tokens = list[float](), list[float](), 0
    follow_up = {"role": "user", "content": "Now it fails in the linker, with two symbols missing. What next?"}
    with OpenAI(base_url=url, api_key="none", max_retries=0, timeout=600) as client:
        for run in range(runs):
            messages = conversation(f"Known{run}", history)
            _, answer, tokens = ask(client, messages)
            turn = [{"role": "assistant", "content": answer}, follow_up]
            warm.append(ask(client, [*messages, *turn])[0])
            cold.append(ask(client, [*conversation(f"Other{run}", history), *turn])[0])
    ratio = statistics.median(slow / fast for slow, fast in zip(cold, warm, strict=True))
    return {
        "history_tokens": tokens,
        "next_turn_s": [round(each, 3) for each in warm],
        "cold_s": [round(each, 3) for each in cold],
        "ratio": round(ratio, 1),
        "holds": ratio >= TARGET,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--history", type=int, default=2000, metavar="TOKENS")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    with server(given.model) as (url, _):
        found = measure(url, history=given.history, runs=given.runs)
    print(json.dumps(found, indent=2))
    raise SystemExit(not found["holds"])


if __name__ == "__main__":
    main()
