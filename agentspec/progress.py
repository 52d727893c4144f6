"""The one look of progress bars: on standard error, so that standard output stays a report."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
        TextColumn("·"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@contextmanager
def stages(tell: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, hand on what a model's loading is at, which it logs to "agentspec.loading"."""
    log, teller = logging.getLogger("agentspec.loading"), _Teller(tell)
    before = log.level
    log.addHandler(teller)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(before)
        log.removeHandler(teller)


class _Teller(logging.Handler):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Tell it."""
        self._tell(record.getMessage())
