"""The one look of progress bars: on standard error, so that standard output stays a report."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


def announce(text: str) -> None:
    """Say what takes long now, on standard error, where that is no terminal and so no bar shows it."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.print(text, markup=False)


def progress_bar() -> Progress:
    """A bar for long work, gone when the work is done and silent where standard error is not a terminal.

    `with progress_bar() as bar: for item in bar.track(items, description="reading"): ...`
    """
    console = Console(stderr=True)
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
