"""`agentspec generate`: one answer, streamed to standard output."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from agentspec.cli.console import err, print_json
from agentspec.cli.options import DraftModel, Json, Model, Schema, ToolChoice, ToolFormat, Tools, answer_options
from agentspec.config import SamplingParams
from agentspec.errors import ConfigError, PromptError, check_text

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
    tools: Tools = None,
    tool_choice: ToolChoice = None,
    tool_format: ToolFormat = None,
    schema: Schema = None,
    raw: Annotated[bool, typer.Option("--raw", help="Go on from the prompt as it is, without chat template.")] = False,
    max_tokens: Annotated[int, typer.Option(metavar="N", help="The most tokens to write.")] = 512,
    temperature: Annotated[float, typer.Option(metavar="T", help="0: the likeliest token each time.")] = 0.0,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Of the noise, with a temperature.")] = None,
    stop: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="End before this text; repeatable.")] = None,
    as_json: Json = False,
) -> None:
    """Answer a prompt, streamed to standard output."""
    from agentspec.chat.formats.registry import check_name
    from agentspec.models.named import check_models

    params = SamplingParams(max_tokens=max_tokens, temperature=temperature, seed=seed, stop=stop or ())
    options = answer_options(tools, tool_choice, schema)
    if tool_format is not None:
        check_name(tool_format)
        if not tools:
            raise ConfigError(f"--tool-format {tool_format} needs --tools FILE")
    asked = _prompt(prompt, system, raw=raw, with_tools=tools is not None)
    check_models(model, draft)
    from agentspec.local.engine import Engine

    with Engine.load(model, draft=draft, speculate=not no_speculate, tool_format=tool_format) as engine:
        result, seconds, first = _stream(engine, asked, params, options, show=not as_json)
    if as_json:
        print_json(_report(result, seconds))
    else:
        _print_summary(result, seconds, first)


def _prompt(prompt: str, system: str | None, *, raw: bool, with_tools: bool) -> Prompt:
    if raw and (system is not None or with_tools):
        raise ConfigError("--raw takes the prompt as it is, so it does not go with --system or --tools")
    text = sys.stdin.read() if prompt == "-" else prompt
    check_text(text, "the prompt", PromptError)
    check_text(system or "", "--system", PromptError)
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
