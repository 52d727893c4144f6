"""Plain prompts: `{"turns", "category"}`."""

from __future__ import annotations

from agentspec.errors import TraceError
from agentspec.replay.categories import of_name
from agentspec.replay.turns import Line, Skipped, Turn

KEYS = frozenset({"turns", "category"})


def read(line: Line) -> list[Turn | Skipped]:
    """The first of the user's texts: later ones follow on answers that are not recorded.

    Raises:
        TraceError: The row can't be used.
    """
    turns = line.row["turns"]
    if not isinstance(turns, list) or not turns or not isinstance(turns[0], str) or not turns[0].strip():
        raise TraceError("turns is not a list that begins with a text")
    return [line.turn(({"role": "user", "content": turns[0]},), of_name(line.row["category"]))]
