"""What a turn asks of a model: what its recorded answer was asked, as far as the record tells or the answer shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from agentspec.config import SamplingParams
from agentspec.errors import TraceError
from agentspec.replay.turns import Turn

if TYPE_CHECKING:
    from agentspec.local.ask import Options


_TOLD = ("parallel_tool_calls", "regex", "lark", "json_whitespace", "prediction")
"""Options that are asked again as a record tells them."""

_REPLAYS_OWN = ("tool_choice", "caller", "speculate")
"""Options that are decided here, by what the record tells or otherwise."""


def tool_choice(turn: Turn, wanted: str = "recorded") -> Options:
    """What is asked of the model where there are tools: "auto", "required", or as it was recorded.

    As recorded is what the record tells. Where it tells nothing, a message that called tools has to call one now, and
    any other turn is free to.
    """
    if wanted == "recorded" and "tool_choice" in turn.options:
        return {"tool_choice": turn.options["tool_choice"]}
    called = turn.called if wanted == "recorded" else wanted == "required"
    return {"tool_choice": "required" if called else "auto"}


def asked_of(turn: Turn, choose: Callable[[Turn], Options] = tool_choice) -> Options:
    """The options of a turn's answer.

    Where there are tools and a schema and no tool choice is recorded, the answer is held to what it is: calls, or that.

    Raises:
        TraceError: The record tells something that nobody can ask.
    """
    for name in turn.options:
        if name not in (*_TOLD, *_REPLAYS_OWN):
            raise TraceError(f"the recorded options have {name!r}; there are: {', '.join((*_TOLD, *_REPLAYS_OWN))}")
    tools: Options = {"tools": turn.tools, **choose(turn)} if turn.tools else {}
    held: Options = {} if turn.schema is None else {"json_schema": dict(turn.schema)}
    if "tool_choice" not in turn.options:
        tools, held = (tools, {}) if turn.called or not held else ({}, held)
    used = [name for name in _TOLD if name in turn.options and (held or name != "json_whitespace")]
    told = {name: turn.options[name] for name in used}
    return cast("Options", {**held, **tools, **told})


def params_of(turn: Turn, max_tokens: int | None, *, own: bool) -> SamplingParams:
    """How a turn's answer is sampled: as recorded, else greedily.

    Args:
        turn: To be answered.
        max_tokens: The most tokens, if the record tells no fewer; None: no limit but the record's.
        own: Whether token ids in the record are of the tokenizer that answers; else they are left out.

    Raises:
        ConfigError: What is recorded can't be used.
    """
    recorded = SamplingParams.of(turn.params)
    if not own:
        words = [word for word in recorded.bad_words if isinstance(word, str)]
        recorded = replace(recorded, logit_bias={}, stop_token_ids=(), bad_words=words)
    limit = min((each for each in (max_tokens, recorded.max_tokens) if each is not None), default=None)
    least = recorded.min_tokens if limit is None else min(recorded.min_tokens, limit)
    return replace(recorded, max_tokens=limit, min_tokens=least, seed=recorded.seed or 0, n=1, logprobs=None)


def caller_of(turn: Turn) -> str:
    """Whose request it was, as it was recorded; "": nobody's."""
    return str(turn.options.get("caller") or "")


def held_to(options: Options) -> str:
    """What an answer is held to, as reports call it: `wire.Held`."""
    choice = options.get("tool_choice", "auto") if options.get("tools") else "none"
    if choice not in ("auto", "none"):
        return "required"  # any tool, or just one by its name
    for name, called in (("json_schema", "schema"), ("regex", "regex"), ("lark", "lark")):
        if name in options:
            return called
    return "auto" if choice == "auto" else "free"


def reason(error: Exception) -> str:
    """The message without the value, which our messages give behind ", not": it is a piece of the recorded text."""
    return str(error).partition(", not ")[0]
