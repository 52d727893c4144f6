"""Two reports side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentspec.errors import TraceError
from agentspec.replay.compare import compare, differences, read_report

FILE = Path(__file__).with_name("golden") / "report.json"


def test_it_says_which_is_better_by_how_much() -> None:
    first = read_report(FILE)
    second = first.model_copy(update={"total": first.total.model_copy(update={"tokens_per_forward": 2.5})})

    told, sides = compare(first, second)
    assert told == "the second is better, +25.0%: 2.00 and 2.50 tokens a forward"
    assert compare(second, first)[0] == "the second is worse, -20.0%: 2.50 and 2.00 tokens a forward"
    assert compare(first, first)[0] == "the same: 2.00 and 2.00 tokens a forward"
    assert [(each.what, each.name, each.first, each.change) for each in sides][-1] == ("accepted", "suffix", 50, 1.0)


def test_a_report_without_a_figure_is_told_in_one_line() -> None:
    first = read_report(FILE)
    second = first.model_copy(update={"total": first.total.model_copy(update={"tokens_per_forward": None})})
    empty = {"by_category": {}, "total": second.total, "turns": []}

    assert compare(first, second)[0] == "which is better can't be told: 2.00 and - tokens a forward"
    both = first.model_copy(update=empty)
    assert compare(both, both)[0] == "which is better can't be told: - and - tokens a forward"


def test_it_says_how_they_were_made_otherwise() -> None:
    first = read_report(FILE)
    second = first.model_copy(update={"setup": first.setup.model_copy(update={"history": True, "budget": 4})})

    assert differences(first, first) == []
    assert differences(first, second) == ["history: False and True", "budget: None and 4"]


def test_reports_of_different_turns_are_refused_in_one_line() -> None:
    first = read_report(FILE)
    second = first.model_copy(update={"turns": first.turns[:1]})

    with pytest.raises(TraceError, match="of different turns: 2 and 1, 1 of them in both; make both from the same"):
        compare(first, second)


def test_what_is_no_report_is_refused(tmp_path) -> None:
    with pytest.raises(TraceError, match="is no report that `agentspec replay --json` of this version wrote"):
        read_report(Path(__file__).with_name("fixtures") / "messages.json")
    with pytest.raises(TraceError, match="can't be read: No such file"):
        read_report(tmp_path / "none.json")
