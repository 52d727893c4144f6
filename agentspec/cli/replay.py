"""`agentspec replay`: what speculation is worth on recorded agent turns, answered anew or decoded without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentspec.cli.console import err, print_json
from agentspec.cli.options import DraftModel, Json, Model, Strict, check_writable, refuse_skipped, refuse_source
from agentspec.cli.replay_checks import COMPARE, EXACT, ORACLE, check_values, mode_of, read_category
from agentspec.cli.replay_exact import run_exact
from agentspec.cli.replay_options import (
    MAX_TOKENS,
    Budgets,
    Categories,
    Choice,
    Compare,
    Cost,
    Each,
    Exact,
    History,
    Html,
    JsonSchema,
    ListFormats,
    MaxTokens,
    Oracle,
    Resume,
    Runs,
    Tokenizer,
    Traces,
    Turns,
)
from agentspec.cli.replay_text import plain_name, print_comparison, print_report
from agentspec.errors import ConfigError, TraceError
from agentspec.explain.account import Spell
from agentspec.progress import progress_bar
from agentspec.replay.asks import tool_choice as chosen
from agentspec.replay.report import Report
from agentspec.replay.traces import read_traces, select
from agentspec.replay.turns import Recording

if TYPE_CHECKING:
    from agentspec.local.engine import Engine
    from agentspec.replay.budgets import BudgetSwitch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the command line asks, of either mode."""

    model: str | None
    draft: str | None
    tokenizer: str | None
    cost: str | None
    max_tokens: int | None
    runs: int
    budgets: Sequence[int]
    history: bool
    resume: Path | None
    tool_choice: str


def replay(
    context: typer.Context,
    traces: Traces,
    model: Model = None,
    draft: DraftModel = None,
    oracle: Oracle = False,
    tokenizer: Tokenizer = None,
    cost: Cost = None,
    turns: Turns = None,
    each: Each = None,
    category: Categories = None,
    tool_choice: Choice = "recorded",
    max_tokens: MaxTokens = None,
    runs: Runs = 1,
    budget: Budgets = None,
    history: History = False,
    resume: Resume = None,
    list_formats: ListFormats = False,
    json_schema: JsonSchema = False,
    html: Html = None,
    compare: Compare = False,
    exact: Exact = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Find out from recorded agent turns what speculation is worth: with a model, or with --oracle without one."""
    mode = mode_of(context)
    if mode == COMPARE:
        return _compare(traces, as_json=as_json)
    if mode == EXACT:
        return run_exact(traces, model, strict=strict, as_json=as_json)
    asked = _Asked(
        model=model,
        draft=draft,
        tokenizer=tokenizer,
        cost=cost,
        max_tokens=max_tokens,
        runs=runs,
        budgets=sorted(set(budget or ())),
        history=history,
        resume=resume,
        tool_choice=tool_choice,
    )
    counts = {"--turns": turns, "--each": each, "--max-tokens": max_tokens, "--runs": runs}
    check_values(counts, asked.budgets, tool_choice=tool_choice, mode=mode)
    categories = [read_category(name) for name in category or ()]
    _check_written(asked, traces, html)
    recording = select(_read(traces, turns, strict=strict), categories=categories, each=each)
    report, spell = _project(recording, asked) if mode == ORACLE else _answer(recording, asked)
    if html is not None and report.turns:
        write_page(report, spell, html, traces)
    if as_json:
        print_json(report.wire.model_dump(mode="json"))
    else:
        print_report(report.wire)
    finish(report)
    if strict:
        refuse_skipped(report.skipped, len(report.skipped))
    return None


def _check_written(asked: _Asked, traces: Sequence[Path], html: Path | None) -> None:
    read = [*traces, asked.model, asked.draft, asked.tokenizer, asked.cost]
    refuse_source("--resume", asked.resume, read)
    refuse_source("--html", html, [*read, asked.resume])
    check_writable(html)


def _read(traces: Sequence[Path], turns: int | None, *, strict: bool) -> Recording:
    read = read_traces(traces, turns=turns)
    if strict:
        refuse_skipped(read.skipped, len(read.skipped))
    return read


def _compare(reports: Sequence[Path], *, as_json: bool) -> None:
    """Two reports side by side."""
    if len(reports) != 2:
        raise ConfigError(f"--compare takes two reports that --json wrote, not {len(reports)}")
    from dataclasses import asdict

    from agentspec.replay.compare import compare, differences, read_report

    first, second = map(read_report, reports)
    told, sides = compare(first, second)
    if as_json:
        rows = [asdict(side) | {"change": side.change} for side in sides]
        print_json({"told": told, "differences": differences(first, second), "sides": rows})
    else:
        print_comparison([told, *differences(first, second)], sides, [path.name for path in reports])


def _answer(recording: Recording, asked: _Asked) -> tuple[Report, Spell]:
    """Live: by a model."""
    from agentspec.models.embedded import DEFAULT
    from agentspec.models.named import check_models

    check_models(asked.model, asked.draft)
    from agentspec.replay import live

    engine, switch = _load(asked)
    way = live.Way(
        model=Path(asked.model or DEFAULT).name,
        draft=asked.draft,
        max_tokens=asked.max_tokens or MAX_TOKENS,
        runs=asked.runs,
        switch=switch,
        budgets=asked.budgets,
        history=asked.history,
        resume=asked.resume,
    )
    with engine, progress_bar() as bar:
        task = bar.add_task("replaying", total=len(recording.turns))
        report = live.replay(
            engine,
            recording,
            way,
            done=lambda found: bar.advance(task),
            choose=lambda turn: chosen(turn, asked.tool_choice),
        )
    return report, engine.spell


def _project(recording: Recording, asked: _Asked) -> tuple[Report, Spell]:
    """Without a model, and without torch."""
    from agentspec.grammar.vocabulary import Vocabulary
    from agentspec.models.embedded import DEFAULT
    from agentspec.models.tokenizer_file import find_tokenizer
    from agentspec.replay.costs import BELIEVED, read_price
    from agentspec.replay.projection import Projection, project
    from agentspec.replay.scribe import Scribe

    price = read_price(asked.cost) if asked.cost is not None else BELIEVED
    tokenizer = find_tokenizer(asked.tokenizer)
    scribe = Scribe(tokenizer, Vocabulary.of(tokenizer))
    way = Projection(
        tokenizer=Path(asked.tokenizer or DEFAULT).name,
        price=price,
        budget=next(iter(asked.budgets), None),
        max_tokens=asked.max_tokens,
        history=asked.history,
        choose=lambda turn: chosen(turn, asked.tool_choice),
    )
    with progress_bar() as bar:
        task = bar.add_task("replaying", total=len(recording.turns))
        report = project(scribe, recording, way, done=lambda found: bar.advance(task))
    return report, scribe.vocabulary.spelled


def _load(asked: _Asked) -> tuple[Engine, BudgetSwitch | None]:
    """An engine, and what sets its budget where some are to be fixed."""
    from agentspec.local.engine import Engine

    if not asked.budgets:
        return Engine.load(asked.model, draft=asked.draft), None
    from agentspec.config import EngineConfig
    from agentspec.local.load import Placement, load_models
    from agentspec.replay.budgets import BudgetSwitch

    config = EngineConfig()
    loaded = load_models(asked.model, asked.draft, placement=Placement(), config=config)
    switch = BudgetSwitch(loaded.controller(config), asked.budgets)
    return Engine(loaded.core(None, config, switch), loaded.asker), switch


def write_page(report: Report, spell: Spell, html: Path, traces: Sequence[Path]) -> None:
    """The report as a page."""
    from agentspec.replay.page import report_page

    title = ", ".join(path.name for path in traces[:3]) + (" and more" if len(traces) > 3 else "")
    html.write_text(report_page(report, spell, title=title), encoding="utf-8", errors="replace")
    err.print(f"written to {html}", style="dim", markup=False)


def finish(report: Report) -> None:
    """Exit as the report demands: 1 a token changed, 130 interrupted, 2 nothing could be answered."""
    if not report.identical:
        changed = [turn for turn in report.turns if turn.identical is False]
        where = ", ".join(f"{plain_name(turn.trace_id)} [{turn.index}]" for turn in changed[:3])
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
        raise TraceError(f"no turn could be answered; the first, {report.skipped[0]}")
