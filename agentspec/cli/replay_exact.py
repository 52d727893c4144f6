"""`agentspec replay --exact`: a recording of our own run again, round by round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentspec.cli.console import err, out, print_json, printable
from agentspec.cli.options import refuse_skipped
from agentspec.progress import progress_bar

if TYPE_CHECKING:
    from agentspec.replay.exact import Checked, Difference, ExactReport


def run_exact(files: Sequence[Path], model: str | None, *, strict: bool, as_json: bool) -> None:
    """Run recordings again and print what came of it; exit 1 where something came out otherwise."""
    from agentspec.models.named import check_models

    check_models(model)
    from agentspec.config import EngineConfig
    from agentspec.local.load import Placement, load_models
    from agentspec.replay.exact import ExactEngine, check_recordings

    config = EngineConfig()
    loaded = load_models(model, None, placement=Placement(), config=config)
    with progress_bar() as bar:
        task = bar.add_task("running again", total=None)
        engine = ExactEngine(loaded.target, loaded.asker, config)
        report = check_recordings(engine, list(map(str, files)), done=lambda: bar.advance(task))
    if as_json:
        print_json({"checked": [asdict(each) for each in report.checked], "skipped": [s.wire for s in report.skipped]})
    else:
        _print(report, loaded.asker.spell)
    if report.first:
        raise typer.Exit(1)
    if strict:
        refuse_skipped(report.skipped, len(report.skipped))


def _print(report: ExactReport, spell: Callable[[int], bytes]) -> None:
    tokens, rounds = sum(each.tokens for each in report.checked), sum(each.rounds for each in report.checked)
    differing = [each for each in report.checked if each.difference]
    what = f"{len(report.checked)} answers, {tokens:,} tokens in {rounds:,} rounds"
    if differing:
        out.print(f"{len(differing)} of {what} came out otherwise; the first:", style="bold red")
        for line in _told(differing[0], spell):
            out.print(line, markup=False)
    else:
        out.print(f"{what}: all as they were recorded", style="bold")
    for each in report.skipped:
        err.print(printable(f"skipped: {each}"), markup=False)


def _told(checked: Checked, spell: Callable[[int], bytes]) -> list[str]:
    found: Difference | None = checked.difference
    assert found is not None, "only answers that differ are told"
    where = f"{checked.trace_id}, answer {checked.answer + 1}: token {found.place + 1}, in round {found.round}"
    pairs = {"recorded": (found.recorded, found.recorded_logprob), "now": (found.now, found.now_logprob)}
    return [where, *(f"  {name:<9}{_token(token, logprob, spell)}" for name, (token, logprob) in pairs.items())]


def _token(token: int | None, logprob: float | None, spell: Callable[[int], bytes]) -> str:
    if token is None:
        return "nothing: the answer is over"
    text = spell(token).decode(errors="replace")
    sure = "not among the 20 likeliest" if logprob is None else f"log-probability {logprob:.4f}"
    return f"{token} {text!r}, {sure}"
