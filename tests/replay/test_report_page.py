"""The page of a report: whole, and nothing of a recorded text is obeyed by a browser."""

from __future__ import annotations

import re

from agentspec.draft import Draft
from agentspec.replay.categories import Category
from agentspec.replay.page import report_page
from agentspec.replay.report import Report
from agentspec.replay.turn_report import TurnReport
from agentspec.segments import Segment
from agentspec.trace import Stats, StepRecord

HOSTILE = '<script>alert("x")</script>'


def spell(token: int) -> bytes:
    return chr(token).encode()


def turn(number: int, speedup: float) -> TurnReport:
    text = tuple(map(ord, HOSTILE))
    draft = Draft.chain((*text[:10], ord("&")), f"suffix{HOSTILE}")
    first = StepRecord(0, Segment.PROSE, draft, (Segment.PROSE,) * 11, tuple(range(10)), text[:11], 1, 12, 0, 1, 2)
    rounds = [first, *(StepRecord(0, Segment.PROSE, Draft(), (), (), (t,), 1, 1, 0, 1, 1) for t in text[11:])]
    stats = Stats()
    for record in rounds:
        stats.add(record)
    return TurnReport(
        trace_id=HOSTILE,
        index=1,
        digest=str(number),
        category=Category.PROSE,
        repeat=False,
        number=number,
        prompt_tokens=3,
        tokens=len(text),
        plain_forwards=len(text),
        plain_seconds=1.0,
        seconds=1.0 / speedup,
        prefill_seconds=0.1,
        speedup=speedup,
        identical=True,
        finish_reason="stop",
        stats=stats,
        rounds=rounds,
        held="free",
    )


def test_the_answer_comes_first_and_hostile_text_is_only_text() -> None:
    setup = {"mode": "live", "agentspec": "0", "model": HOSTILE, "draft": None, "max_tokens": 8, "runs": 1}
    report = Report(
        {**setup, "history": False, "budget": None, "cost": None, "device": {}}, [turn(1, 1.4), turn(2, 0.7)]
    )
    shown = report_page(report, spell, title=HOSTILE)

    assert "<script" not in shown
    assert re.search(r'class="answer">([^<]*)<', shown)[1] == "1.1x slower"  # 2 s, and 1/1.4 + 1/0.7 of ours
    assert "rejected: &amp; (suffix&lt;script&gt;" in shown  # behind the piece in whose stead it was guessed
    lost = shown[shown.index("Where speculation lost") :]
    assert ("turn 2" in lost.split("</table>")[0], "turn 1" in lost.split("</table>")[0]) == (True, False)
    assert not re.search(r'(src|href)="|url\(|@import', shown)  # nothing is fetched
