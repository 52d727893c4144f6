"""What a turn asks of a model: what its recorded answer was asked, as far as the record tells or the answer shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from agentspec.chat.messages import read_messages
from agentspec.config import SamplingParams
from agentspec.replay.turns import Turn

if TYPE_CHECKING:
    from agentspec.local.ask import Options


_REPLAYS_OWN = ("tool_choice", "caller", "speculate")
"""Options that are decided here, whatever the record tells."""


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
    """
    tools: Options = {"tools": turn.tools, **choose(turn)} if turn.tools else {}
    held: Options = {} if turn.schema is None else {"json_schema": dict(turn.schema)}
    if "tool_choice" not in turn.options:
        tools, held = (tools, {}) if turn.called or not held else ({}, held)
    unused = _REPLAYS_OWN if held else (*_REPLAYS_OWN, "json_whitespace")
    told = {name: value for name, value in turn.options.items() if name not in unused}
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
    limits = [limit for limit in (max_tokens, recorded.max_tokens) if limit is not None]
    return replace(recorded, max_tokens=min(limits, default=None), seed=recorded.seed or 0, n=1, logprobs=None)


def own_ids(turn: Turn, spell: Callable[[int], bytes]) -> tuple[int, ...]:
    """The recorded tokens, if there are any and they spell the recorded answer here; else none.

    Args:
        turn: Any.
        spell: A token's text; raises IndexError for one that there isn't.
    """
    if turn.answer is None or not turn.tokens:
        return ()
    try:
        text = b"".join(map(spell, turn.tokens)).decode(errors="replace")
    except IndexError:
        return ()
    (answer,) = read_messages([turn.answer])
    names = [call["function"]["name"] for call in answer.get("tool_calls", ())]
    return turn.tokens if all(part in text for part in (answer["content"].strip(), *names)) else ()


def caller_of(turn: Turn) -> str:
    """Whose request it was, as it was recorded; "": nobody's."""
    return str(turn.options.get("caller") or "")


def held_to(options: Options) -> str:
    """What an answer is held to, as reports call it: `wire.Held`."""
    for name, called in (("json_schema", "schema"), ("regex", "regex"), ("lark", "lark")):
        if name in options:
            return called
    if not options.get("tools") or options.get("tool_choice") == "none":
        return "free"
    choice = options.get("tool_choice", "auto")
    return choice if choice in ("auto", "required") else "required"  # or just one tool, by its name


def reason(error: Exception) -> str:
    """The message without the value, which our messages give behind ", not": it is a piece of the recorded text."""
    return str(error).partition(", not ")[0]
