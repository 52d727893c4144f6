"""`agentspec replay`: recorded agent turns answered anew, plainly and speculatively."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agentspec.cli.console import err, new_table, out, print_json
from agentspec.cli.options import DraftModel, Json, Model
from agentspec.errors import ConfigError, TraceError
from agentspec.progress import progress_bar
from agentspec.replay.report import Report, TurnReport, headline
from agentspec.replay.traces import read_traces

MaxTokens = Annotated[int, typer.Option("--max-tokens", metavar="N", help="The most tokens of an answer.")]


def replay(
    traces: Annotated[list[Path], typer.Argument(metavar="TRACE...", help="JSON lines of recorded conversations.")],
    model: Model = None,
    draft: DraftModel = None,
    turns: Annotated[int | None, typer.Option(metavar="N", help="The most turns of each conversation.")] = None,
    max_tokens: MaxTokens = 256,
    as_json: Json = False,
) -> None:
    """Answer recorded turns twice, plain and speculative, and compare."""
    for name, value in (("--turns", turns), ("--max-tokens", max_tokens)):
        if value is not None and value < 1:
            raise ConfigError(f"{name} must be at least 1, not {value}")
    recording = read_traces(traces, turns=turns)
    from agentspec.local.engine import Engine
    from agentspec.replay.live import replay as answer

    with Engine.load(model, draft=draft) as engine, progress_bar() as bar:
        task = bar.add_task("replaying", total=len(recording.turns))
        report = answer(engine, recording, max_tokens=max_tokens, done=lambda found: bar.advance(task))
    if as_json:
        print_json(report.wire)
    else:
        print_report(report)
    finish(report)


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
    if report.turns:
        out.print(
            f"{total['seconds']:.1f} s, plain {total['plain_seconds']:.1f} s; prompts read once for both in "
            f"{total['prefill_seconds']:.1f} s"
        )
        _print_sources(report)
        _print_segments(report)
        _print_turns(report.turns)
    if report.skipped:
        out.print(f"\nskipped: {len(report.skipped)}")
        for each in report.skipped:
            turn = "" if each.index is None else f" turn {each.index}"
            out.print(f"  {each.file}:{each.line}{turn}: {each.reason}", markup=False)


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
        table.add_row(name.replace("_", " "), *whole[:2], f"{counts['tokens_per_forward']:.1f}", *whole[2:])
    out.print()
    out.print(table)


def _print_turns(turns: list[TurnReport]) -> None:
    numeric = ("turn", "prompt", "tokens", "forwards", "plain s", "s", "faster")
    table = new_table("trace", *numeric, "same", numeric=numeric)
    for turn in turns:
        table.add_row(
            Text(_plain(turn.trace_id)),
            *(f"{count:,}" for count in (turn.index, turn.prompt_tokens, turn.tokens, turn.forwards)),
            *(f"{seconds:.2f}" for seconds in (turn.plain_seconds, turn.seconds)),
            f"{turn.wire['speedup'] or 0:.1f}x",
            "yes" if turn.identical else "NO",
        )
    out.print()
    out.print(table)


def _plain(text: str, width: int = 18) -> str:
    """Others' text, cut to a column and without what a terminal could obey."""
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"
