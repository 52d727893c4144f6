"""What options of `agentspec replay` may be, and which of them go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import typer

from agentspec.errors import ConfigError
from agentspec.replay.categories import Category

LIVE, ORACLE, EXACT, COMPARE = "", "--oracle", "--exact", "--compare"
"""What is done, by the flag that asks for it: turns are answered by a model unless one does."""

_MOST_NODES = 64
_ANSWERED = (LIVE, ORACLE)
_GOES_WITH = {
    "model": (LIVE, EXACT),
    "draft": (LIVE,),
    "runs": (LIVE,),
    "resume": (LIVE,),
    "tokenizer": (ORACLE,),
    "cost": (ORACLE,),
    "strict": (LIVE, ORACLE, EXACT),
    "as_json": (LIVE, ORACLE, EXACT, COMPARE),
}


def mode_of(context: typer.Context) -> str:
    """What the command line asks for.

    Raises:
        ConfigError: An option is given that would be ignored.
    """
    mode = next((flag for flag in (COMPARE, EXACT, ORACLE) if context.params[flag.strip("-")]), LIVE)
    for name in context.params:
        modes = _GOES_WITH.get(name, _ANSWERED)
        if name in ("traces", mode.strip("-")) or mode in modes or not _is_given(context, name):
            continue
        option = "--" + {"as_json": "json"}.get(name, name).replace("_", "-")
        if mode == LIVE:
            raise ConfigError(f"{option} goes with {modes[0]}: add that, or leave {option} out")
        instead = (
            "name its tokenizer with --tokenizer" if (name, mode) == ("model", ORACLE) else "leave one of them out"
        )
        raise ConfigError(f"{option} does not go with {mode}: {instead}")
    if context.params["resume"] and context.params["history"]:
        raise ConfigError("--resume keeps what a model answered, each turn alone: leave out --history")
    return mode


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def check_values(counts: Mapping[str, int | None], budgets: Sequence[int], *, tool_choice: str, mode: str) -> None:
    """Refuse what can't be answered so.

    Args:
        counts: By option; None: not given.
        budgets: In nodes.
        tool_choice: As it was given.
        mode: See `mode_of`.

    Raises:
        ConfigError: A value is out of range.
    """
    for name, value in counts.items():
        if value is not None and value < 1:
            raise ConfigError(f"{name} must be at least 1, not {value}")
    for size in budgets:
        if not 1 <= size <= _MOST_NODES:
            raise ConfigError(f"--budget must be in 1..{_MOST_NODES}, not {size}")
    if mode == ORACLE and len(budgets) > 1:
        raise ConfigError(f"--oracle decodes each answer once: give one --budget at most, not {len(budgets)}")
    if tool_choice not in ("auto", "required", "recorded"):
        raise ConfigError(f"--tool-choice must be auto, required or recorded, not {tool_choice!r}")


def read_category(name: str) -> Category:
    """The category of this name.

    Raises:
        ConfigError: There is none.
    """
    if name not in list(Category):
        raise ConfigError(f"no category is called {name!r}; there are: {', '.join(Category)}")
    return Category(name)
