"""Eight requests at once against the same, one by one and plain: python tests/load/together.py [--model MODEL].

The requests are an agent's: calls of tools that write files, JSON by a schema, edits and prose. Each run is another
user's, so that no answer is drafted from an earlier run's. Exits with 1 if the tokens differ or the gain is too small.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
from time import perf_counter
from typing import Any

from load_server import SERVED, server
from openai import AsyncOpenAI

TARGET = 3.0
SYSTEM = "You are a coding agent. You read and write the files of a small Python project with your tools."
FILE = '''\
def total(prices: list[float], rate: float) -> float:
    """The sum of the prices with tax."""
    result = 0.0
    for price in prices:
        result += price * (1 + rate)
    return round(result, 2)


def cheapest(prices: list[float]) -> float:
    """The lowest price."""
    return min(prices)
'''


def _tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": f"{name} a file", "parameters": parameters}}


TEXT = {"type": "string"}
TOOLS = [_tool("write", path=TEXT, content=TEXT), _tool("replace", path=TEXT, old_text=TEXT, new_text=TEXT)]
REVIEW = {
    "type": "object",
    "properties": {
        "file": {"type": "string", "maxLength": 20},
        "findings": {
            "type": "array",
            "minItems": 2,
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {
                    "line": {"type": "integer"},
                    "severity": {"enum": ["low", "medium", "high"]},
                    "message": {"type": "string", "maxLength": 40},
                },
                "required": ["line", "severity", "message"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["file", "findings"],
    "additionalProperties": False,
}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "review", "schema": REVIEW}}
SHOWN = f"prices.py:\n{FILE}\n"
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    (f"{SHOWN}Write the file again with `cheapest` renamed to `lowest`.", {"tools": TOOLS, "tool_choice": "required"}),
    (f"{SHOWN}Let `total` round to three digits.", {"tools": TOOLS, "tool_choice": "required"}),
    (f"{SHOWN}Review the file as JSON.", {"response_format": SCHEMA}),
    (f"{SHOWN}What could go wrong in it? Answer as JSON.", {"response_format": SCHEMA}),
    (f"{SHOWN}Give the whole file with `rate` renamed to `tax`.", {"prediction": {"type": "content", "content": FILE}}),
    (f"{SHOWN}Give the whole file without docstrings.", {"prediction": {"type": "content", "content": FILE}}),
    ("Explain in a few sentences what a decorator is.", {}),
    ("Write a Python function that tells whether a word is a palindrome.", {}),
]


async def ask(client: AsyncOpenAI, place: int, *, user: str, most: int, speculate: bool) -> tuple[int, str]:
    """A request's tokens, counted, and its answer."""
    text, options = REQUESTS[place]
    answer = await client.chat.completions.create(
        model=SERVED,
        messages=[{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}],
        max_tokens=most,
        user=user,
        extra_body={"speculate": speculate},
        **options,
    )
    message = answer.choices[0].message
    calls = [call.function.arguments for call in message.tool_calls or () if call.type == "function"]
    assert answer.usage is not None
    return answer.usage.completion_tokens, json.dumps([message.content, calls])


async def measure(url: str, *, runs: int, most: int) -> dict[str, Any]:
    """Both ways, in turns; the first turn only warms up."""
    together, alone, same = list[float](), list[float](), True
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=600) as client:
        for run in range(runs + 1):
            began = perf_counter()
            found = await asyncio.gather(
                *(
                    ask(client, place, user=f"{run}-{place}", most=most, speculate=True)
                    for place in range(len(REQUESTS))
                )
            )
            middle = perf_counter()
            plain = [
                await ask(client, place, user=f"{run}-{place}-plain", most=most, speculate=False)
                for place in range(len(REQUESTS))
            ]
            ended = perf_counter()
            same = same and found == plain
            if run:
                together.append(sum(tokens for tokens, _ in found) / (middle - began))
                alone.append(sum(tokens for tokens, _ in plain) / (ended - middle))
    gain = statistics.median(fast / slow for fast, slow in zip(together, alone, strict=True))
    return {
        "together_tokens_per_s": [round(each, 1) for each in together],
        "alone_tokens_per_s": [round(each, 1) for each in alone],
        "gain": round(gain, 2),
        "same_tokens": same,
        "holds": same and gain >= TARGET,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--max-tokens", type=int, default=64)
    given = parser.parse_args()
    with server(given.model) as (url, _):
        found = asyncio.run(measure(url, runs=given.runs, most=given.max_tokens))
    print(json.dumps(found, indent=2))
    raise SystemExit(not found["holds"])


if __name__ == "__main__":
    main()
