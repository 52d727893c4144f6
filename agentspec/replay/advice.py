"""What to change, read from a report's figures alone: each piece names the figure that it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agentspec.replay.categories import Category
from agentspec.replay.wire import Accepted, Advice, ReplayReport

_FEW = 200
"""Drafted tokens below which a rate says little."""

_NOISE = 0.02
"""Part of the time that may be lost here and there."""

_WORTH = 0.05
"""Part of all tokens that is worth a word."""


def advise(report: ReplayReport) -> list[Advice]:
    """What the figures suggest, the most important first; nothing of a report without turns."""
    if not report.turns:
        return []
    return [advice for rule in _RULES for advice in rule(report)]


def _lost(report: ReplayReport) -> Iterator[Advice]:
    slower = [turn for turn in report.turns if turn.speedup is not None and turn.speedup < 1]
    seconds = sum((turn.seconds or 0) - (turn.plain_seconds or 0) for turn in slower)
    if seconds > _NOISE * (report.total.seconds or 0):
        yield Advice(
            kind="lost",
            text=f"Speculation lost {seconds:.2f} s on {len(slower)} of {len(report.turns)} turns: `speculate=False` "
            "for requests like these wins that back.",
            figure=round(seconds, 4),
        )


def _loosened(report: ReplayReport) -> Iterator[Advice]:
    total = report.total
    if total.loosened:
        yield Advice(
            kind="loosened",
            text=f"{total.loosened} of {total.turns} answers could not have been written under what was asked of them: "
            "a schema is broken, or has its keys in another order. agentspec would enforce it, and draft what it "
            "forces; here they count as free text.",
            figure=total.loosened / total.turns,
        )


def _escaped(report: ReplayReport) -> Iterator[Advice]:
    found = report.by_source.get("escaped")
    if found and found.accepted >= _WORTH * report.total.tokens:
        saved = found.accepted / report.total.turns
        yield Advice(
            kind="escaped",
            text=f"What tools showed comes back in its other spelling (escaped or not): that gives {saved:.1f} tokens "
            "a turn for nothing. Keep files whole in the tools' results, and edits close to what was shown.",
            figure=round(saved, 2),
        )


def _free(report: ReplayReport) -> Iterator[Advice]:
    documents = report.by_category.get("free json")
    held = report.by_category.get("json")
    if documents and documents.tokens >= _WORTH * report.total.tokens:
        beside = f" (answers with one made {held.tokens_per_forward:.2f})" if held and held.tokens_per_forward else ""
        yield Advice(
            kind="free json",
            text=f"{documents.turns} answers are JSON that nothing but the prompt asked for, at "
            f"{documents.tokens_per_forward or 0:.2f} tokens a forward{beside}: give their schema as response_format.",
            figure=documents.tokens_per_forward or 0.0,
        )


def _history(report: ReplayReport) -> Iterator[Advice]:
    total, rest = report.total, report.without_repeats
    if not report.setup.history and total.repeats >= max(3, total.turns // 10):
        yield Advice(
            kind="history",
            text=f"{total.repeats} of {total.turns} turns repeat an earlier task: with --history (a caller's name, and "
            "EngineConfig(history=) across restarts) their answers are drafted from the earlier ones; "
            f"the others make {rest.tokens_per_forward or 0:.2f} tokens a forward.",
            figure=total.repeats / total.turns,
        )


def _wasted(report: ReplayReport) -> Iterator[Advice]:
    for name, counts in report.by_source.items():
        if counts.drafted >= _FEW and counts.rate < 0.1:
            yield Advice(
                kind="wasted",
                text=f"Of what {name} drafted {counts.rate:.0%} was accepted ({counts.accepted:,} of "
                f"{counts.drafted:,}): it is tried because forwards are cheap here, and hurts where they are not.",
                figure=counts.rate,
            )


_MUCH = 0.2
"""Part of all tokens from which a draft model is worth a thought."""

_DRAFT_COST = 0.1
"""A draft model's forward by the target's, for one of a tenth of its size."""


def _draft_model(report: ReplayReport) -> Iterator[Advice]:
    """How good a draft model would have to be: its forwards cost time, and what is left must be worth that."""
    free = report.by_segment.get("prose")
    cost = report.setup.cost
    if (
        report.setup.draft
        or cost is None
        or not cost.base_ms
        or free is None
        or free.tokens < _MUCH * report.total.tokens
    ):
        return
    width = cost.relative.get("4") or cost.relative.get("8") or 1.0
    gain = free.tokens_per_forward or 1.0
    needed = gain * (width + 3 * _DRAFT_COST) - 1
    if needed > 0:
        yield Advice(
            kind="draft model",
            text=f"Prose is {free.tokens / report.total.tokens:.0%} of the tokens and makes {gain:.2f} a forward: a "
            f"draft model a tenth as large, asked for 3 tokens a round, would not pay below {needed:.1f} accepted a "
            "round.",
            figure=round(needed, 2),
        )


def _deep(report: ReplayReport) -> Iterator[Advice]:
    """Where drafts that reach their last level are mostly right, longer ones would be too, if tokens cost little."""
    if report.setup.budget or _marginal(report) > _CHEAP:  # or they were cut by whoever asks
        return
    last: Accepted | None = report.by_depth[-1] if report.by_depth else None
    if last and last.drafted >= 20 and last.rate >= 0.7 and last.accepted * 20 >= report.total.forwards:
        yield Advice(
            kind="deep",
            text=f"At the deepest level, {len(report.by_depth)}, {last.rate:.0%} of {last.drafted:,} tokens were "
            "accepted: where one more token in a forward costs next to nothing, as on a GPU, "
            "EngineConfig(max_draft=) above that many would bring more.",
            figure=last.rate,
        )


_CHEAP = 0.1
"""Tokens that could be written otherwise in the time of one more token in a forward: below it that costs nothing."""


def _marginal(report: ReplayReport) -> float:
    """What one more token in the widest forward costs, in tokens that are written in that time; 0: no cost is known."""
    cost = report.setup.cost
    widths = sorted(map(int, cost.relative)) if cost else []
    if cost is None or len(widths) < 2:
        return 0.0
    wide, less = widths[-1], widths[-2]
    slope = (cost.relative[str(wide)] - cost.relative[str(less)]) / (wide - less)
    return slope * (report.total.speedup or 1.0)


def _toolless(report: ReplayReport) -> Iterator[Advice]:
    """Calls whose tools are not in the trace: session files have none."""
    free = [
        turn
        for turn in report.turns
        if turn.category == Category.TOOL_CALL and turn.held == "free" and not turn.loosened
    ]
    if len(free) * 10 >= len(report.turns):
        yield Advice(
            kind="tools",
            text=f"{len(free)} of {len(report.turns)} answers call tools that the trace does not hold, so nothing of "
            "them is forced: `agentspec convert --tools FILE` adds them, as your agent gives them.",
            figure=len(free) / len(report.turns),
        )


_RULES: tuple[Callable[[ReplayReport], Iterator[Advice]], ...] = (
    _lost,
    _toolless,
    _loosened,
    _free,
    _history,
    _escaped,
    _deep,
    _draft_model,
    _wasted,
)
