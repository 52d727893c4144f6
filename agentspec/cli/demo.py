"""`agentspec demo`: a coding agent's turns answered before your eyes, plain and speculative."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from agentspec.cli.console import out, print_json
from agentspec.cli.options import DraftModel, Json, Model
from agentspec.cli.replay import finish
from agentspec.errors import ConfigError
from agentspec.explain.terminal import harmless
from agentspec.replay.report import Report, faster
from agentspec.replay.traces import DEMO, read_traces
from agentspec.replay.turn_report import TurnReport
from agentspec.replay.turns import Skipped, Turn

if TYPE_CHECKING:
    from agentspec.local.ask import Options
    from agentspec.local.engine import Engine

_REFRESH_SECONDS = 0.1  # so that drawing takes nothing noticeable from the decoding that it shows
_NAMES = {False: "plain", True: "agentspec"}


def demo(
    model: Model = None,
    draft: DraftModel = None,
    max_tokens: Annotated[int, typer.Option(metavar="N", help="The most tokens of an answer.")] = 160,
    as_json: Json = False,
) -> None:
    """Watch an agent's turns answered twice, plain and speculative."""
    if max_tokens < 1:
        raise ConfigError(f"--max-tokens must be at least 1, not {max_tokens}")
    if out.is_terminal and not as_json:
        out.print("loading the model …", style="dim", end="\r")
    from agentspec.local.engine import Engine
    from agentspec.models.embedded import resolve

    name = str(resolve(model))
    with Engine.load(name, draft=draft) as engine:
        report = _run(engine, Path(name).name, max_tokens, as_json=as_json)
    if as_json:
        print_json(report.wire.model_dump(mode="json"))
    else:
        _print_summary(report)
    finish(report)


def _run(engine: Engine, name: str, max_tokens: int, *, as_json: bool) -> Report:
    from agentspec.replay.live import Way, replay

    recording, way = read_traces([DEMO]), Way(model=name, max_tokens=max_tokens)
    if as_json:
        return replay(engine, recording, way, choose=_choose)
    out.print(f"{name} answers {len(recording.turns)} turns of a coding agent, each of them twice\n", markup=False)
    display = _Display(len(recording.turns), max_tokens)
    with Live(console=out, transient=True, auto_refresh=False) as live:
        display.live = live if out.is_terminal else None
        return replay(engine, recording, way, choose=_choose, watch=display.watch, done=display.finish)


def _choose(turn: Turn) -> Options:
    """The step that the recorded agent took: a call, or an answer."""
    if turn.called:
        return {"tool_choice": "required", "parallel_tool_calls": False}
    return {"tool_choice": "none"}


class _Display:
    """The turn that is being answered: two bars of tokens, and the end of the text."""

    def __init__(self, turns: int, max_tokens: int) -> None:
        self.live: Live | None = None
        self._turns = turns
        self._turn = 0
        self._max_tokens = max_tokens
        self._start = self._shown = 0.0
        self._text = ""
        self._answer = ""
        self._answers: dict[bool, tuple[int, float]] = {}

    def watch(self, turn: Turn, speculate: bool, text: str, tokens: int) -> None:
        if tokens == 0:
            self._start, self._text = perf_counter(), ""
        self._text += text
        self._answer = self._text if speculate else self._answer
        self._answers[speculate] = (tokens, perf_counter() - self._start)
        if self.live and perf_counter() - self._shown > _REFRESH_SECONDS:
            self._shown = perf_counter()
            self.live.update(Group(self._bars(turn), self._tail(speculate)), refresh=True)

    def finish(self, found: TurnReport | Skipped) -> None:
        self._answers, self._turn = {}, self._turn + 1
        if self.live:
            self.live.update("", refresh=True)
        label = f"turn {self._turn}/{self._turns}"
        if isinstance(found, Skipped):
            out.print(f"{label}: skipped, {found.reason}", markup=False)
            return
        same = "[green]identical[/]" if found.identical else "[bold red]NOT identical[/]"
        out.print(
            f"{label}: {found.tokens:>4} tokens, plain {found.plain_seconds:5.2f} s, agentspec {found.seconds:5.2f} s, "
            f"[bold]{faster(found.speedup or 1).removesuffix(' as plain decoding')}[/], {same}"
        )
        if not self.live:
            cut = " [cut by the limit]" if found.finish_reason == "length" else ""
            out.print(Text(indent(harmless(self._answer).rstrip() + cut, "  ")))

    def _bars(self, turn: Turn) -> Table:
        table = Table.grid(padding=(0, 2))
        for speculate, name in _NAMES.items():
            tokens, seconds = self._answers.get(speculate, (0, 0.0))
            bar = ProgressBar(total=self._max_tokens, completed=tokens, width=30)
            table.add_row(name, bar, f"{tokens:>4} tokens", f"{seconds:5.2f} s")
        return table

    def _tail(self, speculate: bool) -> Text:
        width = max(out.width - 4, 20)
        lines = [line[:width] for line in self._text.splitlines() if line.strip()][-4:]
        shown = "\n".join("".join(char if char.isprintable() else " " for char in line) for line in lines)
        return Text(f"\n{_NAMES[speculate]} writes:\n{shown}\n", style="dim")


def _print_summary(report: Report) -> None:
    if not report.turns:
        return
    total = report.total
    same = "identical" if report.identical else "NOT identical"
    out.print(
        f"\n{total['tokens']:,} tokens, {same}, {faster(total['speedup'] or 1)}",
        style="bold green" if report.identical else "bold red",
    )
    out.print(
        f"{total['seconds']:.1f} s instead of {total['plain_seconds']:.1f} s, "
        f"{total['forwards']:,} forwards instead of {total['plain_forwards']:,}"
    )
