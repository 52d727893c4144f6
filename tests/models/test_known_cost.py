"""What a forward costs is measured once for a model and machine, in no time for a tiny one."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter

import pytest

from agentspec.models import known_cost
from agentspec.models.base import Output, Row
from agentspec.models.cost import sample_forwards
from agentspec.models.toy import tiny_target
from agentspec.testing import ScriptedTarget


def test_measured_once_then_read_and_measured_again_where_the_file_is_broken(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tiny_target()
    started = perf_counter()
    first = known_cost.known_cost(target)
    assert perf_counter() - started < 3.0  # on a busy machine; some 50 ms on a quiet one
    assert first.base_ms > 0
    (file,) = (cache / "costs").iterdir()
    again = dict.fromkeys(known_cost._KINDS, 2.0)
    monkeypatch.setattr(known_cost, "sample_forwards", lambda *_, **__: again)
    assert known_cost.known_cost(target).base_ms == first.base_ms
    assert known_cost.known_cost(tiny_target(layers=1)).base_ms == 2000.0  # another model
    for broken in ("", "[[1, 1]]", "[[1, 1, -3.0]]", "[[2, 1, 3.0]]", '{"1": 2}', "null"):
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
    assert set(sample_forwards(target, kinds, context=3, warm_up=1, most_seconds=-1.0)) == {(1, 1)}
    assert widths == [[3], [1]]
    assert set(sample_forwards(target, kinds, context=3, warm_up=1, most_seconds=60.0)) == set(kinds)
    assert widths[2:7] == [[3], [1], [4], [2, 2], [1]]
