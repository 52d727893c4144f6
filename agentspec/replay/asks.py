"""What a turn asks of a model: the options that its recorded answer was written under, as far as they show."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agentspec.replay.turns import Turn

if TYPE_CHECKING:
    from agentspec.local.ask import Options


def tool_choice(turn: Turn, wanted: str = "recorded") -> Options:
    """What is asked of the model where there are tools: "auto", "required", or as it was recorded.

    As recorded, a message that called tools has to call one now; any other turn is free to.
    """
    called = turn.called if wanted == "recorded" else wanted == "required"
    return {"tool_choice": "required" if called else "auto"}


def asked_of(turn: Turn, choose: Callable[[Turn], Options] = tool_choice) -> Options:
    """The options of a turn's answer: a response format holds the answers that called no tools."""
    if turn.schema is not None and not turn.called:
        return {"json_schema": dict(turn.schema)}
    return {"tools": turn.tools, **choose(turn)} if turn.tools else {}


def held_to(options: Options) -> str:
    """What an answer is held to, as reports call it: "required" or "auto" calls, "schema", or nothing, "free"."""
    if "json_schema" in options:
        return "schema"
    if not options.get("tools"):
        return "free"
    choice = options.get("tool_choice", "auto")
    return choice if choice in ("auto", "required") else "required"  # or just one tool, by its name


def reason(error: Exception) -> str:
    """The message without the value, which our messages give behind ", not": it is a piece of the recorded text."""
    return str(error).partition(", not ")[0]
