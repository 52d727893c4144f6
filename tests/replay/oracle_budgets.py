"""The adaptive budget beside fixed ones over recorded tasks, on a clock that only forwards move.

Run by hand:

    python tests/replay/oracle_budgets.py MODEL FILE... [--max-tokens 96] [--cost 1:1,2:1.06,4:1.14,8:1.64,16:2.81]...

Answers every turn plainly once, then decodes those answers again for each budget with the oracle, in one shuffled
order. A forward costs what was measured on this machine, or what each --cost says by width. Unlike a live comparison it
is not disturbed by anything, and comes out the same each time; what drafting itself costs is left out.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from agentspec import Engine, EngineConfig, SamplingParams
from agentspec.cost import CostTable
from agentspec.local.ask import Ask
from agentspec.local.load import Placement, load_models
from agentspec.models.known_cost import known_cost
from agentspec.replay.asks import asked_of
from agentspec.replay.oracle import Decoded, OracleEngine, Recorded
from agentspec.replay.traces import read_traces

BUDGETS = (1, 2, 3, 5, 7, 15)


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("model")
    given.add_argument("files", nargs="+")
    given.add_argument("--max-tokens", type=int, default=96)
    given.add_argument("--cost", action="append", default=[])
    args = given.parse_args()
    config = EngineConfig()
    loaded = load_models(args.model, None, placement=Placement(), config=config)
    recorded, categories = answers(loaded, args.files, args.max_tokens)
    for costs in args.cost or [""]:
        print(f"cost {costs or 'as measured here'}")
        rates = {}
        for budget in (None, *BUDGETS):
            # A table learns while it is used, so each budget gets one of its own.
            cost = shape(costs) if costs else known_cost(loaded.target)
            oracle = OracleEngine(loaded.vocabulary, cost, budget=budget, config=config)
            rates[budget] = gains(map(oracle.decode, recorded), categories)
            rounded = {name: round(gain, 3) for name, gain in rates[budget].items()}
            print("adaptive" if budget is None else f"budget {budget}", rounded)
        for name, ours in rates[None].items():
            best = max(BUDGETS, key=lambda budget: rates[budget][name])
            print(f"{name}: adaptive {ours:.3f} times plain, best fixed ({best}) {rates[best][name]:.3f}, ", end="")
            print(f"ratio {ours / rates[best][name]:.3f}")


def gains(answers: Iterable[Decoded], categories: list[str]) -> dict[str, float]:
    """How many times as fast as plain each category was, and all."""
    times: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for category, decoded in zip(categories, answers, strict=True):
        for name in (category, "all"):
            times[name][0] += decoded.plain_ms
            times[name][1] += decoded.stats.decode_ms
    return {name: plain / ours for name, (plain, ours) in times.items()}


def answers(loaded, files, max_tokens) -> tuple[list[Recorded], list[str]]:
    """Each turn's plain answer, in a shuffled order that mixes the categories."""
    turns = list(read_traces(files).turns)
    random.Random(5).shuffle(turns)
    recorded, categories = [], []
    with Engine(loaded.core([], EngineConfig()), loaded.asker, speculate=False) as engine:
        for place, turn in enumerate(turns):
            options = {**asked_of(turn), "caller": str(place)}
            params = SamplingParams(max_tokens=max_tokens, seed=0)
            found = engine.generate(turn.messages, params, **options)
            orders, _ = loaded.asker.read(Ask(turn.messages, params, options))
            if len(found.tokens) > 1:
                recorded.append(Recorded(replace(orders[0], speculate=True), found.tokens))
                categories.append(turn.category.value)
    return recorded, categories


def shape(text: str) -> CostTable:
    """A table from `width:cost` pairs, with a forward of one token at 40 ms."""
    pairs = (pair.split(":") for pair in text.split(","))
    return CostTable({int(width): float(cost) for width, cost in pairs}, base_ms=40.0)


if __name__ == "__main__":
    main()
