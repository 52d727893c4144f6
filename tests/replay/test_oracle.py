"""Law 8: with the recording in the target's place, the engine drafts and accepts what it did when it was recorded."""

from __future__ import annotations

import pytest

from agentspec import Engine, EngineConfig, SamplingParams
from agentspec.cost import CostTable
from agentspec.errors import TraceError
from agentspec.local.ask import Ask
from agentspec.replay.oracle import OracleEngine, Recorded

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
    for name in ("get_weather", "get_time")
]
TURNS = [
    ("What is the weather in Oslo?", {"tools": TOOLS, "tool_choice": "required"}),
    ("Repeat after me: the cat sat on the mat, the cat sat on the mat.", {}),
    ("Give me a city.", {"json_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}),
    ("What is the time in Oslo?", {"tools": TOOLS, "tool_choice": "required"}),
]
COST = CostTable({1: 1.0, 2: 1.5}, base_ms=10.0)


@pytest.mark.real_model
def test_the_oracle_accepts_what_the_live_run_accepted(smollm2):
    config = EngineConfig(budget=5)
    with Engine.load(str(smollm2), config=config) as engine:
        live, recorded = [], []
        for text, options in TURNS:
            prompt, params = [{"role": "user", "content": text}], SamplingParams(max_tokens=24, seed=0)
            found = engine.generate(prompt, params, **options)
            orders, _ = engine._asker.read(Ask(prompt, params, options))
            live.append(found.stats)
            recorded.append(Recorded(orders[0], found.tokens))
        oracle = OracleEngine(engine._asker._vocabulary, COST, budget=5, config=config)
        found = [oracle.decode(each) for each in recorded]
        for ours, theirs in zip([each.stats for each in found], live, strict=True):
            assert (ours.forwards, ours.drafted, ours.accepted) == (theirs.forwards, theirs.drafted, theirs.accepted)
            assert ours.segments == theirs.segments
        assert found[0].plain_ms == 10 * (len(recorded[0].answer) - 1)
        assert found[0].stats.decode_ms < found[0].plain_ms  # a call of some keys: fewer, dearer forwards

        wrong = Recorded(recorded[0].order, recorded[1].answer)  # prose where a call is required
        with pytest.raises(TraceError, match="can't be written again"):
            oracle.decode(wrong)
