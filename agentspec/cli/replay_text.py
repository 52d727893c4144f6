"""A replay's report for a terminal, in 80 columns, without the recorded texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from agentspec.cli.console import new_table, out, print_skipped
from agentspec.figures import shown
from agentspec.replay.report import disturbed, headline

if TYPE_CHECKING:
    from agentspec.replay.compare import Side
    from agentspec.replay.wire import Accepted, ReplayReport, Sums, TurnRow

_LOSSY = "approximate: their recorded answers are not to the character what the model wrote"
_LOOSENED = "can't be written under what was asked of them, and count as if less had been asked"


def print_report(report: ReplayReport) -> None:
    """The sums first, then where they come from, in 80 columns."""
    total = report.total
    out.print(headline(report), style="bold red" if total.identical is False else "bold", markup=False)
    if report.turns:
        _print_remarks(report)
        _print_categories(report.by_category, "category")
        _print_budgets(report)
        if total.repeats:
            _print_categories(report.by_category_without_repeats, f"without {total.repeats} repeats")
        _print_sources(report)
        _print_segments(report)
        _print_depths(report)
        _print_turns(report.turns)
        _print_machine(report)
        for advice in report.advice:
            out.print(f"\n- {advice.text}", markup=False, soft_wrap=False)
    if report.skipped:
        out.print(f"\nskipped: {len(report.skipped)}")
        print_skipped(out, report.skipped)


def print_comparison(told: Sequence[str], sides: Sequence[Side], names: Sequence[str]) -> None:
    """Which of two reports is better, how they were made otherwise, then each figure of both."""
    out.print(told[0], style="bold")
    for line in told[1:]:
        out.print(line, markup=False)
    for what in dict.fromkeys(side.what for side in sides):
        columns = [plain_name(name) for name in names]
        columns = columns if columns[0] != columns[1] else ["first", "second"]
        table = new_table(what, *columns, "change", numeric=(*columns, "change"))
        for side in sides:
            if side.what == what:
                change = "-" if side.change is None else f"{side.change - 1:+.1%}"
                digits = 0 if what == "accepted" else 2
                table.add_row(side.name, shown(side.first, digits), shown(side.second, digits), change)
        out.print()
        out.print(table)


def _print_remarks(report: ReplayReport) -> None:
    total, cost = report.total, report.setup.cost
    if report.interrupted:
        out.print("interrupted: these are the turns before")
    if report.setup.mode == "live" and disturbed(total):
        out.print("Other work kept the machine busy, plain decoding most of all: repeat this when it is idle.")
    if total.speedup_interval:
        low, high = total.speedup_interval
        what = "resampled turns, the cost's ends, drafting as slow as here" if cost else "resampled turns, 95 %"
        out.print(f"between {low:.2f}x and {high:.2f}x ({what})")
    if total.seconds is not None and total.prefill_seconds is not None:
        read = f"; prompts read once for both in {total.prefill_seconds:.1f} s"
        out.print(f"{total.seconds:.1f} s, plain {total.plain_seconds:.1f} s{read}")
    elif total.seconds is not None:
        out.print(f"{total.seconds:.1f} s, plain {total.plain_seconds:.1f} s, drafting not counted")
    if report.setup.mode == "live":
        cut = sum(turn.finish_reason == "length" for turn in report.turns)
        told = f", {cut} of {total.turns} cut by a limit" if cut else ""
        out.print(f"the answers are this model's own, not the recorded ones{told}: --oracle decodes those")
    if report.setup.mode == "oracle" and not cost:
        out.print("no cost of a forward is known: give --cost to learn how much faster that is")
    if total.approximate:
        out.print(f"{total.approximate} of {total.turns} turns are {_LOSSY}")
    if total.loosened:
        out.print(f"{total.loosened} of {total.turns} answers {_LOOSENED}")


def _print_machine(report: ReplayReport) -> None:
    """Memory, and energy where the machine tells it."""
    total, peak = report.total, report.setup.device.get("peak_memory_mib")
    told = [f"at most {peak:,} MiB of memory"] if peak else []
    if total.joules is not None and total.plain_joules is not None:
        told.append(f"{total.joules:,.0f} J, plain {total.plain_joules:,.0f} J (the whole machine)")
    if told:
        out.print("\n" + "; ".join(told))


def _print_categories(found: Mapping[str, Sums], title: str) -> None:
    numeric = ("turns", "tokens", "a forward", "plain s", "s", "faster", "median")
    table = new_table(title, *numeric, numeric=numeric)
    for name, sums in found.items():
        table.add_row(
            name,
            *(f"{count:,}" for count in (sums.turns, sums.tokens)),
            shown(sums.tokens_per_forward),
            *(shown(seconds) for seconds in (sums.plain_seconds, sums.seconds)),
            *(_times(speedup) for speedup in (sums.speedup, sums.median_speedup)),
        )
    out.print()
    out.print(table)


def _print_budgets(report: ReplayReport) -> None:
    """The adaptive budget beside the fixed one that was the fastest in each category, and over all of them."""
    rows = {name: sums.budgets for name, sums in {**report.by_category, "all": report.total}.items() if sums.budgets}
    if not rows:
        return
    sizes = list(rows["all"].fixed)
    numeric = (*(f"{size}: s" for size in sizes), "best", "adaptive/best", "median")
    table = new_table("fixed budget", *numeric, numeric=numeric)
    for name, found in rows.items():
        table.add_row(
            name,
            *(f"{found.fixed[size].seconds:.2f}" for size in sizes),
            str(found.best),
            *(_times(each) for each in (found.adaptive_to_best, found.median_adaptive_to_best)),
        )
    out.print()
    out.print(table)


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}x"


def _print_sources(report: ReplayReport) -> None:
    sources = {name: counts for name, counts in report.by_source.items() if counts.drafted}
    if sources:
        _print_accepted("source", sources)


def _print_depths(report: ReplayReport) -> None:
    if report.by_depth:
        _print_accepted("depth", {str(depth): counts for depth, counts in enumerate(report.by_depth, 1)})


def _print_accepted(title: str, found: Mapping[str, Accepted]) -> None:
    table = new_table(title, "drafted", "accepted", "rate", numeric=("drafted", "accepted", "rate"))
    for name, counts in found.items():
        table.add_row(name, f"{counts.drafted:,}", f"{counts.accepted:,}", f"{counts.rate:.0%}")
    out.print()
    out.print(table)


def _print_segments(report: ReplayReport) -> None:
    numeric = ("tokens", "forwards", "a forward", "drafted", "accepted")
    table = new_table("segment", *numeric, numeric=numeric)
    for name, counts in report.by_segment.items():
        first, last = (counts.tokens, counts.forwards), (counts.drafted, counts.accepted)
        mean = shown(counts.tokens_per_forward, 1)  # none where no round began there
        table.add_row(name.replace("_", " "), *(f"{c:,}" for c in first), mean, *(f"{c:,}" for c in last))
    out.print()
    out.print(table)


def _print_turns(turns: Sequence[TurnRow]) -> None:
    timed = any(turn.seconds is not None for turn in turns)
    numeric = ("turn", "prompt", "tokens", "forwards", *(("plain s", "s", "faster") if timed else ("a forward",)))
    table = new_table("trace", *numeric, "same" if turns[0].identical is not None else "held to", numeric=numeric)
    for turn in turns:
        times = (shown(turn.plain_seconds), shown(turn.seconds), f"{turn.speedup or 0:.1f}x")
        table.add_row(
            Text(plain_name(turn.trace_id, 13)),
            *(f"{count:,}" for count in (turn.number, turn.prompt_tokens, turn.tokens, turn.forwards)),
            *(times if timed else (shown(turn.tokens / turn.forwards),)),
            turn.held if turn.identical is None else "yes" if turn.identical else "NO",
        )
    out.print()
    out.print(table)


def plain_name(text: str, width: int = 18) -> str:
    """Others' text, cut to a column and without what a terminal could obey."""
    plain = "".join(char if char.isprintable() else "?" for char in text)
    return plain if len(plain) <= width else f"{plain[: width - 1]}…"
