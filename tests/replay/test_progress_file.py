"""A replay that is gone on with: what was answered is read from the file, and asked no more."""

from __future__ import annotations

import json

import pytest
from engine_doubles import echo_engine

from agentspec.errors import ConfigError
from agentspec.replay.live import Way, replay
from agentspec.replay.traces import read_traces

ROWS = [
    {"trace_id": name, "messages": [{"role": "user", "content": name * 4}, {"role": "assistant", "content": "x"}]}
    for name in ("cat ", "dog ")
]


def answered(tmp_path, rows, **way):
    """The report of these rows, and how many turns were not read from the file."""
    trace = tmp_path / "trace.jsonl"
    trace.write_text("\n".join(map(json.dumps, rows)))
    asked = []
    with echo_engine() as engine:
        report = replay(
            engine,
            read_traces([trace]),
            Way(**{"max_tokens": 8, "resume": tmp_path / "progress.jsonl", **way}),
            watch=lambda turn, speculate, text, tokens: asked.append(turn.digest),
        )
    return report, len(set(asked))


def test_turns_that_were_answered_are_not_asked_again_and_count_the_same(tmp_path) -> None:
    first, asked = answered(tmp_path, ROWS[:1])
    assert asked == 1

    both, asked = answered(tmp_path, ROWS)
    assert (asked, len(both.turns)) == (1, 2)
    again, asked = answered(tmp_path, ROWS)
    assert asked == 0
    assert [turn.model_dump() for turn in again.wire.turns] == [turn.model_dump() for turn in both.wire.turns]
    assert both.wire.turns[0] == first.wire.turns[0]


def test_a_torn_line_is_answered_anew(tmp_path) -> None:
    answered(tmp_path, ROWS)
    file = tmp_path / "progress.jsonl"
    file.write_text(file.read_text()[:-20])

    assert answered(tmp_path, ROWS)[1] == 1
    assert answered(tmp_path, ROWS)[1] == 0


def test_what_was_begun_otherwise_is_not_gone_on_with(tmp_path) -> None:
    answered(tmp_path, ROWS)

    with pytest.raises(ConfigError, match="was begun with another model or machine, or other options: name another"):
        answered(tmp_path, ROWS, max_tokens=9)
