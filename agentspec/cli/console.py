"""What commands print with: reports on standard output, everything else on standard error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

out = Console(highlight=False, soft_wrap=True)
"""Reports. Lines are not folded, so that a path can be copied; a table still fits the terminal."""

err = Console(stderr=True, highlight=False, soft_wrap=True)
"""Errors, warnings and remarks."""


def print_json(report: Mapping[str, object] | Sequence[object]) -> None:
    """Print a report for a program: plain JSON, and nothing else, on standard output."""
    print(json.dumps(report, indent=2, ensure_ascii=False))


def print_error(message: str) -> None:
    """Print one line `error: ...` on standard error, whatever the message holds."""
    err.print("[bold red]error:[/]", end=" ")
    err.print(" ".join(message.split()), markup=False)


def new_table(*columns: str, numeric: Sequence[str] = ()) -> Table:
    """A table in the one look of our reports; the columns named in `numeric` are aligned to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, justify="right" if column in numeric else "left", overflow="fold")
    return table
