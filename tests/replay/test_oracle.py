"""The oracle's own arithmetic; that it decodes as a live engine did, tests/server/test_recording_replayed.py shows."""

from __future__ import annotations

import pytest
from engine_doubles import byte_asker
from toy_vocabulary import EOS, TV

from agentspec.config import SamplingParams
from agentspec.cost import CostTable
from agentspec.errors import TraceError
from agentspec.local.ask import Ask
from agentspec.replay.oracle import OracleEngine, Recorded

COST = CostTable({1: 1.0, 2: 1.5}, base_ms=10.0)
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def recorded(answer: str) -> Recorded:
    """An answer under the schema, a byte a token."""
    (order,), _ = byte_asker().read(Ask("a city:", SamplingParams(seed=0), {"json_schema": SCHEMA}))
    return Recorded(order, (*answer.encode(), EOS))


def test_fewer_and_dearer_forwards_take_less_time_than_plain_ones():
    found = OracleEngine(TV, COST, budget=5).decode(recorded('{"city": "Oslo"}'))

    assert (found.plain_ms, found.finish_reason) == (160.0, "stop")  # 17 tokens, the first from the prompt's forward
    assert found.stats.forwards < 17
    assert found.stats.decode_ms < found.plain_ms


def test_an_answer_that_its_guide_does_not_allow_is_refused():
    with pytest.raises(TraceError, match="can't be written again"):
        OracleEngine(TV, COST, budget=5).decode(recorded("Oslo, I think"))
