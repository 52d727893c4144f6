"""Many agents at once, some of which go away: python tests/load/agents.py [--minutes 5] [--agents 16] [--model MODEL].

Each agent talks to the model in three turns, two of them tool calls, over and over; half of them at temperature 0, half
at 0.8 with a seed of their own. Before the load each has run alone: every answer under load must be the same. One in
five answers is left while it is written. Exits with 1 if an answer differs, a request fails or memory grows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from load_server import SERVED, memory_mib, server
from openai import AsyncOpenAI

CITIES = "Oslo Rome Kyiv Lima Cairo Delhi Tokyo Paris Quito Seoul Dakar Turin Basel Perth Osaka Milan".split()
SYSTEM = "You are an agent that looks things up with its tools before it answers, in one or two short sentences."
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Look up the {what} of a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "enum": CITIES}, "days": {"type": "integer", "maximum": 9}},
                "required": ["city", "days"],
            },
        },
    }
    for name, what in (("get_weather", "weather"), ("get_events", "events"))
]
CHOICES = ["get_weather", "get_events", None]
GROWTH = 1.05
Answer = tuple[str, tuple[tuple[str, str], ...], str]


@dataclass
class Load:
    """What came of it."""

    answers: int = 0
    left: int = 0
    tokens: int = 0
    faults: list[str] = field(default_factory=list)


class Agent:
    """One conversation, had again and again."""

    def __init__(self, client: AsyncOpenAI, number: int) -> None:
        self.number = number
        self._client = client
        self._alone: list[Answer] = []
        self._random = random.Random(number)

    async def alone(self) -> None:
        """Learn what the answers are."""
        load = Load()
        async for answer in self._turns(load, leave=0):
            self._alone.append(answer)

    async def run(self, load: Load, until: float) -> None:
        """Talk until it is time."""
        while monotonic() < until:
            place = 0
            try:
                async for answer in self._turns(load, leave=0.2):
                    if answer != self._alone[place]:
                        load.faults.append(f"agent {self.number}, turn {place}: {answer} is not {self._alone[place]}")
                    place += 1
                    load.answers += 1
            except Exception as error:
                load.faults.append(f"agent {self.number}, turn {place}: {error!r}")

    async def _turns(self, load: Load, *, leave: float) -> Any:
        messages: list[Any] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": f"What should I do in {CITIES[self.number % len(CITIES)]} this week?"},
        ]
        for choice in CHOICES:
            leaves_at = self._random.randrange(1, 8) if self._random.random() < leave else None
            answer = await self._turn(messages, choice, load, leaves_at)
            if answer is None:
                load.left += 1
                return
            yield answer
            text, calls, _ = answer
            wire = [
                {"id": f"call_{place}", "type": "function", "function": {"name": name, "arguments": arguments}}
                for place, (name, arguments) in enumerate(calls)
            ]
            messages.append({"role": "assistant", "content": text or None, "tool_calls": wire})
            for call in wire:
                found = f"{call['function']['name']}: quiet, 7 degrees, a market on Saturday, a concert at night."
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": found})

    async def _turn(self, messages: list[Any], choice: str | None, load: Load, leaves_at: int | None) -> Answer | None:
        named: Any = {"type": "function", "function": {"name": choice}} if choice else "none"
        hot = {"temperature": 0.8, "seed": self.number} if self.number % 2 else {}
        stream = await self._client.chat.completions.create(
            model=SERVED,
            messages=messages,
            tools=TOOLS,  # type: ignore[arg-type]
            tool_choice=named,
            max_tokens=48,
            stream=True,
            stream_options={"include_usage": True},
            **hot,
        )
        text, calls, finish = "", list[list[str]](), ""
        async with stream:
            chunks = 0
            async for chunk in stream:
                chunks += 1
                if leaves_at is not None and chunks > leaves_at:
                    return None
                load.tokens += chunk.usage.completion_tokens if chunk.usage else 0
                for each in chunk.choices:
                    text += each.delta.content or ""
                    finish = each.finish_reason or finish
                    for call in each.delta.tool_calls or ():
                        if call.index == len(calls):
                            calls.append([call.function.name, ""])  # type: ignore[union-attr]
                        calls[call.index][1] += call.function.arguments or ""  # type: ignore[union-attr]
        return text, tuple((name, arguments) for name, arguments in calls), finish


async def watch(process: int, until: float) -> list[float]:
    """Memory, every two seconds."""
    found = []
    while monotonic() < until:
        await asyncio.sleep(2)
        found.append(memory_mib(process))
    return found


async def measure(url: str, process: int, *, agents: int, minutes: float, warm_up: float) -> dict[str, Any]:
    """Run the load; what came of it."""
    load = Load()
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=120) as client:
        crowd = [Agent(client, number) for number in range(agents)]
        for agent in crowd:
            await agent.alone()
        warming = Load(faults=load.faults)
        await asyncio.gather(*(agent.run(warming, monotonic() + 60 * warm_up) for agent in crowd))
        began, until = monotonic(), monotonic() + 60 * minutes
        memory, *_ = await asyncio.gather(watch(process, until), *(agent.run(load, until) for agent in crowd))
        seconds = monotonic() - began
    quarter = max(len(memory) // 4, 1)
    first, last = statistics.median(memory[:quarter]), statistics.median(memory[-quarter:])
    return {
        "agents": agents,
        "seconds": round(seconds, 1),
        "answers": load.answers,
        "left": load.left,
        "tokens_per_s": round(load.tokens / seconds, 1),
        "memory_mib": [round(first), round(last), round(max(memory))],
        "grew": round(last / first, 4),
        "faults": load.faults[:5],
        "holds": not load.faults and last <= GROWTH * first and load.answers > 0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--agents", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--warm-up", type=float, default=1.0, metavar="MINUTES")
    given = parser.parse_args()
    with server(given.model) as (url, process):
        found = asyncio.run(measure(url, process, agents=given.agents, minutes=given.minutes, warm_up=given.warm_up))
    print(json.dumps(found, indent=2))
    raise SystemExit(not found["holds"])


if __name__ == "__main__":
    main()
