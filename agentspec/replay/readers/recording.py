"""What `agentspec serve --record` wrote: a conversation's keys, and what exact replay needs besides."""

from __future__ import annotations

from agentspec.errors import TraceError
from agentspec.replay.readers import conversation
from agentspec.replay.turns import Line, Skipped, Turn

FORMAT = "agentspec-recording"
VERSION = 1


def read(line: Line) -> list[Turn | Skipped]:
    """The turn that was answered, as the first of its answers was.

    Raises:
        TraceError: The row is of another version, can't be used, or a turn can't ask what it asked.
    """
    row = line.row
    if row.get("version") != VERSION:
        raise TraceError(f"a recording of another version: this agentspec reads version {VERSION}")
    if row.get("redacted"):
        raise TraceError("the recording is redacted: there are no messages that could be answered anew")
    if "messages" not in row:
        raise TraceError("the prompt was no conversation: it can't be answered anew as one")
    options = row.get("options")
    if isinstance(options, dict) and {"regex", "lark"} & options.keys():
        raise TraceError("the answer was held to a regex or a grammar, and a turn can't ask for that")
    return conversation.read(line)
