"""`agentspec generate`: one answer, streamed to standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentspec.cli.console import err, print_json
from agentspec.cli.options import DraftModel, Json, Model
from agentspec.config import SamplingParams
from agentspec.errors import ConfigError, PromptError

if TYPE_CHECKING:
    from agentspec.local.ask import Options, Prompt
    from agentspec.local.engine import Engine
    from agentspec.local.result import Result


def generate(
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="A user's message; - reads standard input.")],
    model: Model = None,
    draft: DraftModel = None,
    no_speculate: Annotated[bool, typer.Option("--no-speculate", help="Plain decoding: the same tokens.")] = False,
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="A system message before the prompt.")] = None,
    tools: Annotated[Path | None, typer.Option(metavar="FILE", help="JSON list of OpenAI tools.")] = None,
    tool_choice: Annotated[
        str | None, typer.Option(metavar="CHOICE", help="auto (default), required, none or a tool's name.")
    ] = None,
    tool_format: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="How the model writes calls. Default: as its chat template shows."),
    ] = None,
    schema: Annotated[Path | None, typer.Option(metavar="FILE", help="JSON Schema of the answer.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Go on from the prompt as it is, without chat template.")] = False,
    max_tokens: Annotated[int, typer.Option(metavar="N", help="The most tokens to write.")] = 512,
    temperature: Annotated[float, typer.Option(metavar="T", help="0: the likeliest token each time.")] = 0.0,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Of the noise, with a temperature.")] = None,
    stop: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="End before this text; repeatable.")] = None,
    as_json: Json = False,
) -> None:
    """Answer a prompt, streamed to standard output."""
    from agentspec.chat.formats.registry import check_name

    params = SamplingParams(max_tokens=max_tokens, temperature=temperature, seed=seed, stop=stop or ())
    options = _options(tools, tool_choice, schema)
    if tool_format is not None:
        check_name(tool_format)
    asked = _prompt(prompt, system, raw=raw, with_tools=tools is not None)
    from agentspec.local.engine import Engine

    with Engine.load(model, draft=draft, speculate=not no_speculate, tool_format=tool_format) as engine:
        result, seconds, first = _stream(engine, asked, params, options, show=not as_json)
    if as_json:
        print_json(_report(result, seconds))
    else:
        _print_summary(result, seconds, first)


def _options(tools: Path | None, tool_choice: str | None, schema: Path | None) -> Options:
    """Files and choices, checked before a model is loaded."""
    from agentspec.grammar.tools import chosen, read_tools

    if tools and schema:
        raise ConfigError("the answer can be held to one thing, not to --tools and --schema: leave one out")
    if schema:
        value = _read_json(schema, "--schema")
        if not isinstance(value, dict):
            raise ConfigError(f"--schema {schema} must hold a JSON Schema, an object")
        return {"json_schema": value}
    if not tools:
        if tool_choice is not None:
            raise ConfigError(f"--tool-choice {tool_choice} needs --tools FILE")
        return {}
    value = _read_json(tools, "--tools")
    if not isinstance(value, list) or not value:
        raise ConfigError(f"--tools {tools} must hold a JSON list of OpenAI tools, at least one")
    try:
        chosen(read_tools(value), tool_choice or "auto")
    except ConfigError as error:
        raise ConfigError(f"--tools {tools}: {error}") from error
    return {"tools": value, "tool_choice": tool_choice or "auto"}


def _read_json(path: Path, option: str) -> Any:  # noqa: ANN401
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{option} {path} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{option} {path} is not JSON: {error}") from error


def _prompt(prompt: str, system: str | None, *, raw: bool, with_tools: bool) -> Prompt:
    if raw and (system is not None or with_tools):
        raise ConfigError("--raw takes the prompt as it is, so it does not go with --system or --tools")
    text = sys.stdin.read() if prompt == "-" else prompt
    if not text.strip():
        raise PromptError("the prompt is empty: give a text, or - and something on standard input")
    if raw:
        return text
    before = [] if system is None else [{"role": "system", "content": system}]
    return [*before, {"role": "user", "content": text}]


def _stream(
    engine: Engine, prompt: Prompt, params: SamplingParams, options: Options, *, show: bool
) -> tuple[Result, float, tuple[float, int]]:
    """The answer, its seconds, and the seconds and tokens of its first piece."""
    start, first, result, last = perf_counter(), (0.0, 0), None, "\n"
    for event in engine.stream(prompt, params, **options):
        if event.tokens and not first[1]:
            first = (perf_counter() - start, len(event.tokens))
        if show:
            _write(event.text)
        last, result = event.text[-1:] or last, event.result
    if show and last != "\n":
        _write("\n")
    assert result is not None, "the last event of a stream holds the result"
    return result, perf_counter() - start, first


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _report(result: Result, seconds: float) -> dict[str, object]:
    usage = result.usage
    return {
        "message": result.message,
        "text": result.text,
        "finish_reason": result.finish_reason,
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.total_tokens,
            "cached_tokens": usage.cached_tokens,
        },
        "stats": result.stats.to_dict(),
        "seed": result.seed,
        "seconds": round(seconds, 4),
    }


def _print_summary(result: Result, seconds: float, first: tuple[float, int]) -> None:
    tokens, forwards = len(result.tokens), result.stats.forwards
    parts: Sequence[str] = [f"{tokens:,} tokens in {forwards:,} forwards"]
    if forwards:
        parts = [f"{parts[0]}, {tokens / forwards:.1f} a forward"]
    if tokens > first[1]:
        parts = [*parts, f"{(tokens - first[1]) / (seconds - first[0]):.1f} tokens/s"]
    if result.finish_reason == "length":
        parts = [*parts, "cut by the length limit"]
    err.print(" · ".join(parts), style="dim")
