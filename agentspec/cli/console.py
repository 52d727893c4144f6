"""What commands print with: reports on standard output, everything else on standard error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.table import Table
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

if TYPE_CHECKING:
    from agentspec.replay.turns import Skipped
    from agentspec.replay.wire import Left

out = Console(highlight=False, emoji=False, soft_wrap=True)
"""Reports. Lines are not folded, so that a path can be copied; a table still fits the terminal."""

err = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)
"""Errors, warnings and remarks."""


def print_json(report: Mapping[str, object] | Sequence[object]) -> None:
    """Print a report for a program: plain JSON, and nothing else, on standard output."""
    print(json.dumps(report, indent=2, ensure_ascii=False))


def print_error(message: str) -> None:
    """Print one line `error: ...` on standard error, whatever the message holds."""
    err.print("[bold red]error:[/]", end=" ")
    err.print(printable(" ".join(message.split())), markup=False)


def printable(text: str) -> str:
    """The text with its control characters written out: a file's name may hold codes for the terminal."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def print_skipped(console: Console, skipped: Sequence[Skipped | Left]) -> None:
    """Print what of some traces could not be used, a line each."""
    for each in skipped:
        turn = "" if each.index is None else f" turn {each.index}"
        console.print(printable(f"  {each.file}:{each.line}{turn}: {each.reason}"), markup=False)


def new_table(*columns: str, numeric: Sequence[str] = ()) -> Table:
    """A table in the one look of our reports; the columns named in `numeric` are aligned to the right."""
    table = _Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, justify="right" if column in numeric else "left", overflow="fold")
    return table


class Command(TyperCommand):
    """A command whose help shows no type beside a flag, which takes no value, and an argument, whose name tells it."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 (private types of typer)
        """The parameters, `--help` among them."""
        return _without_types(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands, likewise."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 (private types of typer)
        """The parameters, `--help` among them."""
        return _without_types(super().get_params(ctx))


def _without_types(params: list[Any]) -> list[Any]:
    for each in params:
        if isinstance(each, TyperArgument):
            each.display_type_rich = _no_type  # type: ignore[method-assign]
        elif isinstance(each, TyperOption) and each.is_flag and each.metavar is None:
            each.metavar = ""
    return params


def _no_type(ctx: object) -> None:
    """What typer shows beside an argument: it has no metavar for the type, and would show Python's."""


class _Table(Table):
    """A table without blanks at the ends of its lines, so that what is piped can be searched and compared."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        drawn = (each for each in super().__rich_console__(console, options) if isinstance(each, Segment))
        for line in Segment.split_lines(drawn):
            cells = list(line)
            while cells and not cells[-1].text.strip(" "):
                cells.pop()
            yield from cells[:-1]
            yield from (Segment(cell.text.rstrip(" "), cell.style) for cell in cells[-1:])
            yield Segment.line()
