"""Options that several commands share, so that one name means one thing everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Folder, .gguf file, known name (see `agentspec models`) or hub id. Default: smollm2-135m.",
    ),
]

DraftModel = Annotated[
    str | None,
    typer.Option("--draft", "-d", metavar="MODEL", help="A small model with the same tokenizer that guesses ahead."),
]
