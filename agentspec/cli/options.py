"""Options that several commands share, so that one name means one thing everywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentspec.errors import ConfigError, TraceError

if TYPE_CHECKING:
    from agentspec.local.ask import Options
    from agentspec.replay.turns import Skipped

Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]

Strict = Annotated[bool, typer.Option("--strict", help="Fail (exit 2) where a record can't be used.")]

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

Tools = Annotated[Path | None, typer.Option("--tools", metavar="FILE", help="JSON list of OpenAI tools.")]

ToolChoice = Annotated[
    str | None,
    typer.Option("--tool-choice", metavar="CHOICE", help="auto (default), required, none or a tool's name."),
]

ToolFormat = Annotated[
    str | None,
    typer.Option("--tool-format", metavar="NAME", help="How the model writes calls. Default: as its template shows."),
]

Schema = Annotated[Path | None, typer.Option("--schema", metavar="FILE", help="JSON Schema of the answer.")]


def answer_options(tools: Path | None, tool_choice: str | None, schema: Path | None) -> Options:
    """What the answer is held to, from files and choices, checked before a model is loaded.

    Raises:
        ConfigError: A file can't be read or holds something else, or the options contradict one another.
    """
    from agentspec.grammar.tools import chosen, read_tools

    options: Options = {}
    if schema:
        described = read_json(schema, "--schema")
        if not isinstance(described, dict):
            raise ConfigError(f"--schema {schema} must hold a JSON Schema, an object")
        options["json_schema"] = described
    if not tools:
        if tool_choice is not None:
            raise ConfigError(f"--tool-choice {tool_choice} needs --tools FILE")
        return options
    value = read_json(tools, "--tools")
    if not isinstance(value, list) or not value:
        raise ConfigError(f"--tools {tools} must hold a JSON list of OpenAI tools, at least one")
    try:
        chosen(read_tools(value), tool_choice or "auto")
    except ConfigError as error:
        raise ConfigError(f"--tools {tools}: {error}") from error
    return {**options, "tools": value, "tool_choice": tool_choice or "auto"}


def read_json(path: Path, option: str) -> Any:  # noqa: ANN401
    """The value in a file that `option` names.

    Raises:
        ConfigError: It can't be read, or is not JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{option} {path} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{option} {path} is not JSON: {error}") from error


def refuse_source(option: str, path: Path | None, sources: Iterable[Path | str | None], to: str = "read") -> None:
    """See that what is written is none of the files that are read, not by a link either, before anything is read.

    Args:
        option: What names the file to write.
        path: That file; None: nothing is written.
        sources: What is read; names that are no files, and None, are passed over.
        to: What is done with them.

    Raises:
        ConfigError: It is one.
    """
    if path is not None and any(_same(path, Path(source)) for source in sources if source is not None):
        raise ConfigError(f"{option} {path} is one of the files to {to}: name another one")


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one is not there yet
        return os.path.realpath(one) == os.path.realpath(other)
    except ValueError:  # a text that is no path
        return False


def check_writable(html: Path | None) -> None:
    """See that a page can be written, before a model is loaded and not after it has answered.

    Raises:
        ConfigError: It can't.
    """
    if html is None:
        return
    try:
        html.open("a").close()
    except OSError as error:
        raise ConfigError(f"--html {html} can't be written: {error.strerror}") from error


def refuse_skipped(first: Sequence[Skipped], count: int) -> None:
    """What --strict asks for.

    Args:
        first: What was skipped, or the first of it.
        count: How much was.

    Raises:
        TraceError: Something was.
    """
    if first:
        raise TraceError(f"--strict: {count} skipped; the first: {first[0]}")
