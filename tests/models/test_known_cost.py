"""What a forward costs is measured once for a model and machine, in no time for a tiny one."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest

from agentspec.models import known_cost
from agentspec.models.base import Output, Row
from agentspec.models.cost import sample_forwards
from agentspec.models.toy import tiny_target
from agentspec.testing import ScriptedTarget


def test_measured_once_then_read_and_measured_again_where_the_file_is_broken(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_cost, "_MOST_SECONDS", 60.0)  # on a quiet machine all of it takes a tenth of a second
    target = tiny_target()
    first = known_cost.known_cost(target)
    assert first.base_ms > 0
    (file,) = (cache / "costs").iterdir()
    again = dict.fromkeys(known_cost._KINDS, 2.0)
    monkeypatch.setattr(known_cost, "sample_forwards", lambda *_, **__: again)
    assert known_cost.known_cost(target).base_ms == first.base_ms
    assert known_cost.known_cost(tiny_target(layers=1)).base_ms == 2000.0  # another model
    broken_ones = ["[[1, 1]]", "[[1, 1, -3.0]]", "[[2, 1, 3.0]]", '{"1": 2}', "null", "[" * 100_000]
    for broken in ("", *broken_ones, "[[Infinity, 1, 1]]", "[[1, 1, 1e400]]"):
        file.write_text(broken)
        assert known_cost.known_cost(target).base_ms == 2000.0
    assert json.loads(file.read_text())[:2] == [[1, 1, 2.0], [2, 1, 2.0]]


def test_a_cache_folder_that_cannot_be_written_is_done_without(cache: Path) -> None:
    cache.write_text("a file")
    assert known_cost.known_cost(tiny_target()).base_ms > 0


def test_what_was_not_reached_is_believed_as_elsewhere(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {(1, 1): 0.1, (2, 1): 0.2, (2, 2): 0.25}
    monkeypatch.setattr(known_cost, "sample_forwards", lambda *_, **__: seconds)
    monkeypatch.setattr(known_cost, "CPU_SHAPE", {1: 1.0, 2: 1.1, 4: 2.2, 8: 4.4})
    cost = known_cost.known_cost(tiny_target())
    assert [cost.relative(width) for width in (1, 2, 4, 8)] == pytest.approx([1.0, 2.0, 4.0, 8.0])
    assert cost.relative(4, rows=2) == pytest.approx(4.5)
    assert not (cache / "costs").exists()  # another time there may be time for all of it


def test_no_forward_begins_when_time_is_up() -> None:
    widths: list[list[int]] = []

    class Watched(ScriptedTarget):
        def forward(self, rows: list[Row]) -> Output:
            widths.append([row.width for row in rows])
            return super().forward(rows)

    target = Watched(lambda tokens: {1: 1.0}, vocab_size=8, eos=frozenset(), context_length=64)
    kinds = [(1, 1), (4, 1), (4, 2)]
    assert set(sample_forwards(target, kinds, context=3, turns=2, most_seconds=-1.0)) == {(1, 1)}
    assert widths == [[3], [1]]
    assert set(sample_forwards(target, kinds, context=3, turns=2, most_seconds=60.0)) == set(kinds)
    assert widths[2:] == [[3], *([[1], [4], [2, 2]] * 2)]


def test_a_forward_that_ran_once_is_no_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    target = ScriptedTarget(lambda tokens: {1: 1.0}, vocab_size=8, eos=frozenset(), context_length=64)
    clock = count()
    monkeypatch.setattr("agentspec.models.cost.perf_counter", lambda: float(next(clock)))
    # Four forwards at three looks at the clock each, then time is up: the second kind ran twice, the third once.
    kinds = [(1, 1), (2, 1), (4, 1)]
    assert sample_forwards(target, kinds, context=3, turns=4, most_seconds=15.0) == {(1, 1): 1.0, (2, 1): 1.0}
