"""A report as one HTML page that needs nothing else. It shows pieces of the recorded texts, all of them escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agentspec.explain.account import TARGET, Account, Spell, explain
from agentspec.explain.frame import class_names, render, styled
from agentspec.explain.page import tip
from agentspec.explain.terminal import visible
from agentspec.replay import charts
from agentspec.replay.charts import Chart
from agentspec.replay.report import Report, disturbed, faster
from agentspec.replay.turn_report import TurnReport
from agentspec.replay.wire import ReplayReport

_MOST_LOST = 20
_MOST_PIECES = 4000  # of a turn's text
_REJECTED_CHARS = 60


@dataclass(frozen=True, slots=True)
class _Shown:
    """A turn that the page shows in full; `why` it was chosen."""

    why: str
    turn: TurnReport
    line: Chart
    items: list[dict[str, Any]]
    cut: bool


def report_page(report: Report, spell: Spell, *, title: str) -> str:
    """The page, for light and dark screens, wide and narrow.

    Args:
        report: Of at least one turn, with their rounds.
        spell: A token's bytes.
        title: Such as the names of the files.
    """
    wire = report.wire
    drafting, drafted = Counter[str](), Counter[str]()
    for turn in report.turns:
        drafting.update(turn.stats.accepted)
        drafted.update(turn.stats.drafted)
    names = class_names((*(source for source, _ in drafting.most_common() if drafted[source]), TARGET))
    return render(
        "report.html.jinja",
        title=f"agentspec replay: {title}",
        report=wire,
        answer=_answer(wire),
        origin=charts.origin(report.turns, names),
        sources=styled(names),
        names=names,
        segments=_segments(report),
        by_turn=charts.by_turn(report.turns),
        lost=_lost(report.turns),
        shown=[_shown(why, turn, names, spell) for why, turn in _chosen(report.turns)],
        width=charts.WIDTH,
    )


def _answer(wire: ReplayReport) -> str:
    total = wire.total
    if total.speedup is None:
        return f"{total.tokens_per_forward or 0:.2f} tokens a forward"
    speedup = total.median_speedup if wire.setup.mode == "live" and disturbed(total) else total.speedup
    return f"{'about ' if wire.setup.mode == 'oracle' else ''}{faster(speedup or 1.0)}"


def _segments(report: Report) -> list[tuple[str, int, dict[str, tuple[int, int]]]]:
    """Of each segment its name and tokens, and by source what was drafted there and what of it accepted."""
    tokens, drafted, accepted = Counter[str](), Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for turn in report.turns:
        for record in turn.rounds:
            tokens.update(record.token_segments)
            places = list(zip(record.segments, record.draft.sources, strict=True))
            drafted.update(places)
            accepted.update(places[node] for node in record.path)
    sources = {source for _, source in drafted}
    return [
        (
            str(segment).replace("_", " "),
            count,
            {s: (drafted[segment, s], accepted[segment, s]) for s in sources if drafted[segment, s]},
        )
        for segment, count in tokens.most_common()
    ]


def _lost(turns: Sequence[TurnReport]) -> list[TurnReport]:
    """Turns that came out slower than plain, the worst first; without times, those that won next to nothing."""
    slower = [turn for turn in turns if (turn.speedup if turn.speedup is not None else _gain(turn) - 0.05) < 1]
    return sorted(slower, key=lambda turn: turn.speedup if turn.speedup is not None else _gain(turn))[:_MOST_LOST]


def _gain(turn: TurnReport) -> float:
    return turn.tokens / turn.forwards


def _chosen(turns: Sequence[TurnReport]) -> Iterator[tuple[str, TurnReport]]:
    """Some turns to look at: the longest, the one that won most, the one in the middle, the one that won least."""
    ranked = sorted((turn for turn in turns if turn.rounds), key=_gain)
    if not ranked:
        return
    wanted = {
        "the longest answer": max(ranked, key=lambda turn: turn.tokens),
        "won most": ranked[-1],
        "the one in the middle": ranked[len(ranked) // 2],
        "won least": ranked[0],
    }
    seen: list[TurnReport] = []
    for why, turn in wanted.items():
        if not any(turn is each for each in seen):
            seen.append(turn)
            yield why, turn


def _shown(why: str, turn: TurnReport, names: dict[str, str], spell: Spell) -> _Shown:
    account = explain(turn.rounds, spell)
    took = [record.total_ms for record in turn.rounds]
    items = list(_items(account, names))
    return _Shown(why, turn, charts.time_line(turn, names, took), items[:_MOST_PIECES], len(items) > _MOST_PIECES)


def _items(account: Account, names: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The pieces of an answer, each with what was guessed in its stead."""
    wrong: dict[int, list[str]] = {}
    for branch in account.rejected:
        text = f"rejected: {visible(branch.text, _REJECTED_CHARS)} ({branch.source})"
        wrong.setdefault(branch.place, []).append(text)
    before = 0
    for place, piece in enumerate(account.pieces):
        told = "\n".join([tip(piece), *wrong.get(place, ())])
        name = names[piece.source] + (" instead" if place in wrong else "")
        yield {"wrong": False, "name": name, "text": piece.text, "tip": told, "starts": piece.round != before}
        before = piece.round
