"""`agentspec explain`: an answer coloured by who guessed it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from agentspec.cli.console import err, new_table, out, print_json
from agentspec.cli.options import (
    DraftModel,
    Json,
    Model,
    Schema,
    ToolChoice,
    ToolFormat,
    Tools,
    answer_options,
    check_writable,
    refuse_source,
)
from agentspec.config import SamplingParams
from agentspec.errors import ConfigError, PromptError, check_text
from agentspec.explain.account import Account
from agentspec.explain.account import explain as account_of
from agentspec.explain.page import page
from agentspec.explain.terminal import coloured, fill, legend, listed, marks
from agentspec.models.embedded import DEFAULT
from agentspec.replay.traces import read_row, read_traces
from agentspec.replay.turns import Turn

if TYPE_CHECKING:
    from agentspec.local.ask import Options, Prompt
    from agentspec.local.result import Result


_NAMES_FILE = re.compile(r"\S+\.(jsonl?|txt|md)")
"""A prompt like this was meant to be a file, wherever there is none."""


def explain(
    prompt: Annotated[
        str, typer.Argument(metavar="PROMPT|FILE", help="A user's message, or a file: text, messages or recorded rows.")
    ],
    model: Model = None,
    draft: DraftModel = None,
    turn: Annotated[
        int | None, typer.Option(metavar="N", help="Of a recorded row or file: which turn, from 1 (default).")
    ] = None,
    tools: Tools = None,
    tool_choice: ToolChoice = None,
    tool_format: ToolFormat = None,
    schema: Schema = None,
    max_tokens: Annotated[int, typer.Option(metavar="N", help="The most tokens to write.")] = 256,
    rejected: Annotated[bool, typer.Option("--rejected", help="Show wrong guesses where they were made.")] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a page for a browser.")] = None,
    as_json: Json = False,
) -> None:
    """Answer a prompt and show who guessed each piece of it."""
    from agentspec.chat.formats.registry import check_name
    from agentspec.models.named import check_models

    if tool_format is not None:
        check_name(tool_format)
    params = SamplingParams(max_tokens=max_tokens)
    asked = _asked(prompt, turn)
    options = _options(asked, answer_options(tools, tool_choice if tools else None, schema), tool_choice)
    options["rounds"] = True
    refuse_source("--html", html, [prompt, tools, schema, model, draft])
    check_writable(html)
    check_models(model, draft)
    from agentspec.local.engine import Engine

    with Engine.load(model, draft=draft, tool_format=tool_format) as engine:
        result = engine.generate(asked.prompt, params, **options)
        account = account_of(result.rounds, engine.spell)
    if html is not None:
        title = f"{Path(model or DEFAULT).name}: {asked.label}"
        html.write_text(page(account, title=title, facts=_facts(result, account), rejected=rejected), encoding="utf-8")
        err.print(f"written to {html}", style="dim", markup=False)
    if as_json:
        print_json(_report(result, account))
    else:
        _print(account, _facts(result, account), rejected=rejected)


@dataclass(frozen=True, slots=True)
class _Asked:
    prompt: Prompt
    options: Options
    label: str
    recorded: bool = False


def _asked(prompt: str, turn: int | None) -> _Asked:
    """What a text or a file asks."""
    if turn is not None and turn < 1:
        raise ConfigError(f"--turn must be at least 1, not {turn}")
    found = _read(prompt, turn or 1)
    if turn is not None and not found.recorded:
        raise ConfigError(f"--turn {turn} needs a recorded row or file, and {_label(prompt)} is none: leave it out")
    return found


def _read(prompt: str, turn: int) -> _Asked:
    file = Path(prompt)
    if not _is_file(file):
        check_text(prompt, "the prompt", PromptError)
        if _NAMES_FILE.fullmatch(prompt):
            raise PromptError(f"{prompt} can't be read: No such file")
        if not prompt.strip():
            raise PromptError("the prompt is empty: give a text or a file")
        return _Asked([{"role": "user", "content": prompt}], {}, _label(prompt))
    if file.suffix == ".jsonl":
        return _of_turn([*read_traces([file]).turns], turn, prompt)
    text = file.read_text(encoding="utf-8", errors="replace")
    if file.suffix != ".json":
        return _Asked([{"role": "user", "content": text}], {}, _label(text))
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PromptError(f"{prompt} is not JSON: {error}") from error
    return _of_json(value, turn, prompt)


def _of_json(value: Any, turn: int, name: str) -> _Asked:  # noqa: ANN401
    if isinstance(value, list):
        value = {"messages": value}
    if not isinstance(value, dict):
        raise PromptError(f"{name} must hold messages or a recorded row, not {type(value).__name__}")
    messages = value.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages and "targets" not in value else None
    if isinstance(messages, list) and isinstance(last, dict) and last.get("role") != "assistant":
        options: Options = {"tools": value["tools"]} if value.get("tools") else {}
        return _Asked(messages, options, Path(name).name)
    return _of_turn([each for each in read_row(value, name) if isinstance(each, Turn)], turn, name)


def _of_turn(turns: list[Turn], number: int, name: str) -> _Asked:
    from agentspec.replay.asks import asked_of

    if number > len(turns):
        raise ConfigError(f"--turn {number}: {name} has {len(turns)} turn(s)")
    found = turns[number - 1]
    return _Asked(found.messages, asked_of(found), f"{found.trace_id}, message {found.index}", recorded=True)


def _options(asked: _Asked, given: Options, tool_choice: str | None) -> Options:
    """The file's options, where none were given."""
    if given:
        return given
    if tool_choice is None:
        return {**asked.options}
    if not asked.options.get("tools"):
        raise ConfigError(f"--tool-choice {tool_choice} needs --tools FILE")
    return {**asked.options, "tool_choice": tool_choice}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # too long for a name, so a text
        return False


def _label(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 70 else f"{line[:69]}…"


def _facts(result: Result, account: Account) -> str:
    tokens, forwards = account.total.tokens, account.total.forwards
    mean = f", {tokens / forwards:.1f} a forward" if forwards else ""
    cut = ", cut by the length limit" if result.finish_reason == "length" else ""
    return f"{tokens:,} tokens in {forwards:,} forwards{mean}{cut}"


def _report(result: Result, account: Account) -> dict[str, object]:
    return {
        "text": result.text,
        "message": result.message,
        "finish_reason": result.finish_reason,
        "stats": result.stats.to_dict(),
        **account.wire,
    }


def _print(account: Account, facts: str, *, rejected: bool) -> None:
    if out.is_terminal and out.color_system and not out.no_color:
        out.print(coloured(account, rejected=rejected))
        out.print()
        out.print(legend(account))
    else:
        runs = new_table("round", "source", "text", numeric=("round",))
        for number, source, text in listed(account, rejected=rejected):
            runs.add_row(number, source, Text(text))
        out.print(runs)
        out.print()
        out.print(marks(account, rejected=rejected))
    counts = ("tokens", "forwards", "drafted", "accepted", "rejected")
    table = new_table("segment", "source", *counts, numeric=counts)
    fill(table, account)
    out.print()
    out.print(table)
    out.print()
    out.print(facts, style="dim")
