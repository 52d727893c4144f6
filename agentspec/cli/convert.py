"""`agentspec convert`: trace files of any format as conversations, one row of JSON a line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from agentspec.cli.console import err, new_table, out, print_json, print_skipped
from agentspec.cli.options import Json, Strict, read_json, refuse_skipped, refuse_source
from agentspec.errors import ConfigError, TraceError
from agentspec.replay.convert import Converted
from agentspec.replay.convert import convert as convert_files
from agentspec.replay.readers.base import object_list
from agentspec.replay.readers.messages import as_tools

_SHOWN = 10


def convert(
    traces: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Traces; see replay --list-formats.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", help="Where to write; default: standard output.")
    ] = None,
    tools: Annotated[
        Path | None, typer.Option(metavar="FILE", help="JSON list of tools, for conversations that record none.")
    ] = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Write traces of any format as conversations, one row of JSON a line."""
    if as_json and output is None:
        raise ConfigError("--json needs -o OUT: standard output has the conversations")
    refuse_source("-o", output, [*traces, tools], "convert")
    found_tools = as_tools(object_list(read_json(tools, "--tools"), "--tools")) if tools else ()
    if tools and not found_tools:
        raise ConfigError(f"--tools {tools} holds no function: give a JSON list of tools, or leave it out")
    with _writer(output) as write:
        found = convert_files(map(str, traces), write, tools=found_tools)
        if not found.total.turns:
            first = f"; the first: {found.first[0]}" if found.first else ""
            raise TraceError(f"no turn can be read from {len(traces)} trace file(s){first}")
    if as_json:
        print_json(found.wire)
    else:
        _print(found, len(traces), out if output else err)
    if strict:
        refuse_skipped(found.first, found.reasons.total())


@contextmanager
def _writer(output: Path | None) -> Iterator[Callable[[str], object]]:
    """Writes lines; a file appears when all are written."""
    if output is None:
        yield sys.stdout.write
        return
    whole = not output.exists() or output.is_file()  # a pipe or a device is written as it comes
    partial = output.with_name(f".{output.name}.{os.getpid()}") if whole else output
    try:
        with partial.open("w", encoding="utf-8") as file:
            yield file.write
        if whole:
            partial.replace(output)
    except OSError as error:
        raise ConfigError(f"-o {output} can't be written: {error.strerror}") from error
    finally:
        if whole:
            with suppress(OSError):
                partial.unlink()


def _print(found: Converted, files: int, console: Console) -> None:
    total = found.total
    counted = f"{total.conversations:,} conversations, {total.turns:,} turns, {total.calls:,} calls"
    console.print(f"{counted} from {files:,} file(s)", style="bold")
    numeric = ("conversations", "turns", "calls", "approximate", "with ids")
    table = new_table("format", *numeric, numeric=numeric)
    for name, counts in found.formats.items():
        table.add_row(name, *(f"{value:,}" for value in counts.wire.values()))
    console.print()
    console.print(table)
    if total.approximate:
        console.print(f"\n{total.approximate:,} turns are approximate: not to the character what the model wrote.")
    if found.first:
        _print_skipped(found, console)


def _print_skipped(found: Converted, console: Console) -> None:
    console.print(f"\nskipped: {found.reasons.total():,}")
    shown = found.first[:_SHOWN]
    print_skipped(console, shown)
    if found.reasons.total() > len(shown):
        console.print(f"  and {found.reasons.total() - len(shown):,} more")
