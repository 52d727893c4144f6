"""`agentspec replay`: recorded agent turns answered anew, plainly and speculatively."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from agentspec.cli.console import err, new_table, out, print_json
from agentspec.cli.options import DraftModel, Json, Model, Strict
from agentspec.errors import ConfigError, TraceError
from agentspec.progress import progress_bar
from agentspec.replay.categories import Category
from agentspec.replay.report import Report, disturbed, headline
from agentspec.replay.traces import read_traces, select
from agentspec.replay.turn_report import TurnReport
from agentspec.replay.turns import Skipped

if TYPE_CHECKING:
    from agentspec.local.engine import Engine
    from agentspec.replay.budgets import BudgetSwitch

_MOST_NODES = 64
_LOSSY = "approximate: their recorded answers are not to the character what the model wrote"
MaxTokens = Annotated[int, typer.Option("--max-tokens", metavar="N", help="The most tokens of an answer.")]


def _list_formats(wanted: bool) -> None:
    if not wanted:
        return
    from agentspec.replay.formats import FORMATS

    table = new_table("format", "what it is", "how it is recognised")
    for each in FORMATS:
        table.add_row(each.name, each.what, Text(each.sign))
    out.print(table)
    raise typer.Exit


def replay(
    traces: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Traces; see --list-formats.")],
    model: Model = None,
    draft: DraftModel = None,
    turns: Annotated[int | None, typer.Option(metavar="N", help="The most of each conversation, its first.")] = None,
    each: Annotated[int | None, typer.Option(metavar="N", help="The most turns of each category.")] = None,
    category: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help=f"Only these: {', '.join(Category)}; repeatable.")
    ] = None,
    tool_choice: Annotated[
        str, typer.Option(metavar="CHOICE", help="auto, required, or recorded: calls where there were calls.")
    ] = "recorded",
    max_tokens: MaxTokens = 256,
    runs: Annotated[int, typer.Option(metavar="N", help="How often each turn is answered; medians count.")] = 1,
    budget: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Also with drafts of a fixed size; repeatable.")
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Keep what earlier turns' answers taught; default: each turn alone.")
    ] = False,
    list_formats: Annotated[
        bool, typer.Option("--list-formats", is_eager=True, callback=_list_formats, help="What traces can be.")
    ] = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Answer recorded turns twice, plain and speculative, and compare."""
    _check({"--turns": turns, "--each": each, "--max-tokens": max_tokens, "--runs": runs}, budget or (), tool_choice)
    categories = [_category(name) for name in category or ()]
    read = read_traces(traces, turns=turns)
    if strict:
        _refuse(read.skipped)
    recording = select(read, categories=categories, each=each)
    from agentspec.replay import live

    engine, switch = _load(model, draft, sorted(set(budget or ())))
    way = live.Way(max_tokens=max_tokens, runs=runs, switch=switch, budgets=sorted(set(budget or ())), history=history)
    with engine, progress_bar() as bar:
        task = bar.add_task("replaying", total=len(recording.turns))
        report = live.replay(
            engine,
            recording,
            way,
            done=lambda found: bar.advance(task),
            choose=lambda turn: live.tool_choice(turn, tool_choice),
        )
    if as_json:
        print_json(report.wire)
    else:
        print_report(report)
    finish(report)
    if strict:
        _refuse(report.skipped)


def _refuse(skipped: Sequence[Skipped]) -> None:
    if skipped:
        first = skipped[0]
        raise TraceError(f"--strict: {len(skipped)} skipped; the first: {first.file}:{first.line}: {first.reason}")


def _check(counts: Mapping[str, int | None], budgets: Sequence[int], tool_choice: str) -> None:
    for name, value in counts.items():
        if value is not None and value < 1:
            raise ConfigError(f"{name} must be at least 1, not {value}")
    for size in budgets:
        if not 1 <= size <= _MOST_NODES:
            raise ConfigError(f"--budget must be in 1..{_MOST_NODES}, not {size}")
    if tool_choice not in ("auto", "required", "recorded"):
        raise ConfigError(f"--tool-choice must be auto, required or recorded, not {tool_choice!r}")


def _category(name: str) -> Category:
    if name not in list(Category):
        raise ConfigError(f"no category is called {name!r}; there are: {', '.join(Category)}")
    return Category(name)


def _load(model: str | None, draft: str | None, budgets: Sequence[int]) -> tuple[Engine, BudgetSwitch | None]:
    """An engine, and what sets its budget where some are to be fixed."""
    from agentspec.local.engine import Engine

    if not budgets:
        return Engine.load(model, draft=draft), None
    from agentspec.config import EngineConfig
    from agentspec.local.load import Placement, load_models
    from agentspec.replay.budgets import BudgetSwitch

    config = EngineConfig()
    loaded = load_models(model, draft, placement=Placement(), config=config)
    switch = BudgetSwitch(loaded.controller(config), budgets)
    return Engine(loaded.core(None, config, switch), loaded.asker), switch


def finish(report: Report) -> None:
    """Exit as the report demands: 1 a token changed, 130 interrupted, 2 nothing could be answered."""
    if not report.identical:
        changed = [turn for turn in report.turns if not turn.identical]
        where = ", ".join(f"{_plain(turn.trace_id)} [{turn.index}]" for turn in changed[:3])
        err.print(
            f"LOSSLESSNESS BROKEN: {len(changed)} of {len(report.turns)} turns differ from plain decoding ({where}). "
            "In float32 that is a fault of agentspec: please report it.",
            style="bold red",
            markup=False,
        )
        raise typer.Exit(1)
    if report.interrupted:
        err.print("interrupted: the report holds the turns before")
        raise typer.Exit(130)
    if not report.turns:
        first = report.skipped[0]
        raise TraceError(f"no turn could be answered; the first, {first.file}:{first.line}: {first.reason}")


def print_report(report: Report) -> None:
    """The sums first, then where they come from, in 80 columns."""
    total = report.total
    out.print(headline(report), style="bold" if report.identical else "bold red")
    if report.turns and disturbed(total):
        out.print("Other work kept the machine busy, plain decoding most of all: repeat this when it is idle.")
    if report.turns:
        out.print(
            f"{total['seconds']:.1f} s, plain {total['plain_seconds']:.1f} s; prompts read once for both in "
            f"{total['prefill_seconds']:.1f} s"
        )
        if total["approximate"]:
            out.print(f"{total['approximate']} of {total['turns']} turns are {_LOSSY}")
        _print_categories(report.by_category(), "category")
        _print_budgets(report)
        if total["repeats"]:
            _print_categories(report.by_category(repeats=False), f"without {total['repeats']} repeats")
        _print_sources(report)
        _print_segments(report)
        _print_turns(report.turns)
    if report.skipped:
        out.print(f"\nskipped: {len(report.skipped)}")
        for each in report.skipped:
            turn = "" if each.index is None else f" turn {each.index}"
            out.print(f"  {each.file}:{each.line}{turn}: {each.reason}", markup=False)


def _print_categories(found: Mapping[str, Mapping[str, Any]], title: str) -> None:
    numeric = ("turns", "tokens", "a forward", "plain s", "s", "faster", "median")
    table = new_table(title, *numeric, numeric=numeric)
    for name, sums in found.items():
        table.add_row(
            name,
            *(f"{sums[key]:,}" for key in ("turns", "tokens")),
            f"{sums['tokens_per_forward']:.2f}",
            *(f"{sums[key]:.2f}" for key in ("plain_seconds", "seconds")),
            *(_times(sums[key]) for key in ("speedup", "median_speedup")),
        )
    out.print()
    out.print(table)


def _print_budgets(report: Report) -> None:
    """The adaptive budget beside the fixed one that was the fastest in each category, and over all of them."""
    rows = {name: sums["budgets"] for name, sums in report.by_category().items() if "budgets" in sums}
    if not rows:
        return
    rows["all"] = report.total["budgets"]
    sizes = list(rows["all"]["fixed"])
    columns = [f"{size}: s" for size in sizes]
    numeric = (*columns, "best", "adaptive/best", "median")
    table = new_table("fixed budget", *numeric, numeric=numeric)
    for name, found in rows.items():
        table.add_row(
            name,
            *(f"{found['fixed'][size]['seconds']:.2f}" for size in sizes),
            str(found["best"]),
            *(_times(found[key]) for key in ("adaptive_to_best", "median_adaptive_to_best")),
        )
    out.print()
    out.print(table)


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}x"


def _print_sources(report: Report) -> None:
    sources = {name: counts for name, counts in report.wire["by_source"].items() if counts["drafted"]}
    if not sources:
        return
    table = new_table("source", "drafted", "accepted", "rate", numeric=("drafted", "accepted", "rate"))
    for name, counts in sources.items():
        table.add_row(name, f"{counts['drafted']:,}", f"{counts['accepted']:,}", f"{counts['rate']:.0%}")
    out.print()
    out.print(table)


def _print_segments(report: Report) -> None:
    numeric = ("tokens", "forwards", "a forward", "drafted", "accepted")
    table = new_table("segment", *numeric, numeric=numeric)
    for name, counts in report.wire["by_segment"].items():
        whole = [f"{counts[key]:,}" for key in ("tokens", "forwards", "drafted", "accepted")]
        mean = counts["tokens_per_forward"]  # None: no round began there
        table.add_row(name.replace("_", " "), *whole[:2], "-" if mean is None else f"{mean:.1f}", *whole[2:])
    out.print()
    out.print(table)


def _print_turns(turns: list[TurnReport]) -> None:
    numeric = ("turn", "prompt", "tokens", "forwards", "plain s", "s", "faster")
    table = new_table("trace", *numeric, "same", numeric=numeric)
    for turn in turns:
        table.add_row(
            Text(_plain(turn.trace_id)),
            *(f"{count:,}" for count in (turn.number, turn.prompt_tokens, turn.tokens, turn.forwards)),
            *(f"{seconds:.2f}" for seconds in (turn.plain_seconds, turn.seconds)),
            f"{turn.speedup or 0:.1f}x",
            "yes" if turn.identical else "NO",
        )
    out.print()
    out.print(table)


def _plain(text: str, width: int = 18) -> str:
    """Others' text, cut to a column and without what a terminal could obey."""
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"
