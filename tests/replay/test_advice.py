"""Advice from figures that a table makes up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentspec.replay.advice import advise
from agentspec.replay.wire import ReplayReport

REPORT: dict[str, Any] = json.loads(Path(__file__).with_name("golden").joinpath("report.json").read_text())


def changed(**parts: Any) -> ReplayReport:
    """The fixture's report of two turns, 100 tokens in 50 forwards, with some figures changed."""
    row = json.loads(json.dumps(REPORT))
    for path, value in parts.items():
        *outer, last = path.split("__")
        place = row
        for name in outer:
            place = place[int(name) if name.isdigit() else name.replace("free_json", "free json")]
        place[int(last) if last.isdigit() else last] = value
    return ReplayReport.model_validate(row)


SUMS = {**REPORT["by_category"]["prose"], "turns": 2, "tokens": 60, "tokens_per_forward": 1.5}
COST = {"name": "x", "computed": True, "base_ms": 5.0, "relative": {"1": 1.0, "4": 1.1}}


@pytest.mark.parametrize(
    ("parts", "kind", "figure", "words"),
    [
        ({}, None, 0, ""),
        ({"total__loosened": 1}, "loosened", 0.5, "1 of 2 answers could not have been written"),
        ({"by_source__escaped": {"drafted": 40, "accepted": 30, "rate": 0.75}}, "escaped", 15.0, "15.0 tokens a turn"),
        ({"by_category": {"free json": SUMS}}, "free json", 1.5, "2 answers are JSON that nothing but the prompt"),
        ({"total__repeats": 3}, "history", 1.5, "3 of 2 turns repeat an earlier task"),
        ({"by_source__suffix": {"drafted": 500, "accepted": 20, "rate": 0.04}}, "wasted", 0.04, "4% was accepted"),
        (
            {"turns__0__speedup": 0.5, "turns__0__seconds": 2.0, "turns__0__plain_seconds": 1.0},
            "lost",
            1.0,
            "1.00 s on 1",
        ),
        ({"by_depth": [{"drafted": 40, "accepted": 36, "rate": 0.9}]}, "deep", 0.9, "level, 1, 90%"),
        ({"turns__0__held": "free", "turns__0__category": "tool call"}, "tools", 0.5, "1 of 2 answers call tools that"),
        # 2 tokens a forward at 1.1 + 3 * 0.1 forwards a round: 2.8 tokens, of which one is the target's own.
        ({"setup__cost": COST}, "draft model", 1.8, "below 1.8 accepted"),
    ],
)
def test_each_piece_names_the_figure_that_it_rests_on(parts, kind, figure, words) -> None:
    found = advise(changed(**parts))

    assert [each.kind for each in found] == ([kind] if kind else [])
    if kind:
        assert found[0].figure == pytest.approx(figure)
        assert words in found[0].text


def test_longer_drafts_are_no_advice_where_they_cost_or_were_cut() -> None:
    depths = [{"drafted": 40, "accepted": 36, "rate": 0.9}]
    dear = {**COST, "relative": {"8": 1.0, "16": 2.0}}

    assert "deep" not in [each.kind for each in advise(changed(by_depth=depths, setup__cost=dear))]
    assert advise(changed(by_depth=depths, setup__budget=4)) == []


def test_a_report_without_turns_has_none() -> None:
    assert advise(changed(turns=[])) == []
