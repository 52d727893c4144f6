"""The options of `agentspec replay`, apart from those that other commands have too."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agentspec.cli.console import new_table, out, print_json
from agentspec.replay.categories import Category

MAX_TOKENS = 256
"""Of an answer, where nothing else is asked."""


def _list_formats(wanted: bool) -> None:
    if not wanted:
        return
    from agentspec.replay.formats import FORMATS

    table = new_table("format", "what it is", "how it is recognised")
    for each in FORMATS:
        table.add_row(each.name, each.what, Text(each.sign))
    out.print(table)
    raise typer.Exit


def _json_schema(wanted: bool) -> None:
    if not wanted:
        return
    from agentspec.replay.wire import ReplayReport

    print_json(ReplayReport.model_json_schema())
    raise typer.Exit


Traces = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Traces (see --list-formats); with --compare, two reports.")
]
Oracle = Annotated[
    bool, typer.Option("--oracle", help="Without a model: decode the recorded answers, with a tokenizer alone.")
]
Tokenizer = Annotated[
    str | None,
    typer.Option(metavar="NAME|FILE", help="Oracle: tokenizer.json, tiktoken's file, or a model. Default: embedded."),
]
Cost = Annotated[
    str | None,
    typer.Option(metavar="FILE|PROFILE", help="Oracle: of `bench --cost --json`, or computed:DEVICE:SIZEb:DTYPE."),
]
Turns = Annotated[int | None, typer.Option(metavar="N", help="The most turns of each conversation, its first.")]
Each = Annotated[int | None, typer.Option(metavar="N", help="The most turns of each category.")]
Categories = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help=f"Only these: {', '.join(Category)}; repeatable.")
]
Choice = Annotated[
    str,
    typer.Option(
        metavar="CHOICE", help="auto, required, or recorded: as asked where that is told, calls where calls were."
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(metavar="N", help=f"The most tokens of an answer; default {MAX_TOKENS}. Oracle: no limit."),
]
Runs = Annotated[int, typer.Option(metavar="N", help="How often each turn is answered; medians count.")]
Budgets = Annotated[
    list[int] | None,
    typer.Option(metavar="N", help="Also with drafts of a fixed size; repeatable. Oracle: with such drafts only."),
]
History = Annotated[
    bool, typer.Option("--history", help="Keep what earlier turns' answers taught; default: each turn alone.")
]
Resume = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Keep turns there as they are answered, and go on from there.")
]
Html = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a page for a browser.")]
Exact = Annotated[
    bool, typer.Option("--exact", help="The files are our recordings: run every round again, find what differs.")
]
Compare = Annotated[bool, typer.Option("--compare", help="The two files are reports of --json: set them side by side.")]
ListFormats = Annotated[
    bool, typer.Option("--list-formats", is_eager=True, callback=_list_formats, help="What traces can be.")
]
JsonSchema = Annotated[
    bool, typer.Option("--json-schema", is_eager=True, callback=_json_schema, help="Of what --json prints.")
]
