"""Writes what trace files of any format hold as conversations, one row of JSON a line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentspec.replay.conversations import Conversation, Tool
from agentspec.replay.traces import read_conversations
from agentspec.replay.turns import Skipped, Turn

_SHOWN = 100  # of what was skipped: a large file may be broken throughout


@dataclass(slots=True)
class Counts:
    """What was converted of one format.

    Attributes:
        conversations: Rows that were written.
        turns: Messages in them that a model wrote and that can be replayed.
        calls: Calls of tools in those.
        approximate: Those of the turns that are not to the character what the model wrote.
        with_ids: Those of the turns whose token ids were recorded.
    """

    conversations: int = 0
    turns: int = 0
    calls: int = 0
    approximate: int = 0
    with_ids: int = 0

    def add(self, turn: Turn) -> None:
        """Count a turn of a conversation."""
        self.turns += 1
        self.calls += len((turn.answer or {}).get("tool_calls") or ())
        self.approximate += turn.approximate
        self.with_ids += bool(turn.tokens)

    @property
    def wire(self) -> dict[str, int]:
        """As reports show it."""
        names = ("conversations", "turns", "calls", "approximate", "with_ids")
        return {name: getattr(self, name) for name in names}


@dataclass(slots=True)
class Converted:
    """What came of a conversion.

    Attributes:
        formats: By name, in the order in which they were met.
        reasons: How often something was skipped, by why.
        first: The first of what was skipped.
    """

    formats: dict[str, Counts] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    first: list[Skipped] = field(default_factory=list)

    @property
    def total(self) -> Counts:
        """Sums over the formats."""
        total = Counts()
        for counts in self.formats.values():
            for name, value in counts.wire.items():
                setattr(total, name, getattr(total, name) + value)
        return total

    def skip(self, skipped: Skipped) -> None:
        """Count what can't be used."""
        self.reasons[skipped.reason] += 1
        if len(self.first) < _SHOWN:
            self.first.append(skipped)

    @property
    def wire(self) -> dict[str, Any]:
        """As `agentspec convert --json` prints it."""
        return {
            "formats": {name: counts.wire for name, counts in self.formats.items()},
            "total": self.total.wire,
            "skipped": self.reasons.total(),
            "reasons": dict(self.reasons.most_common()),
            "first_skipped": [skipped.wire for skipped in self.first],
        }


def convert(files: Iterable[str], write: Callable[[str], object], *, tools: Sequence[Tool] = ()) -> Converted:
    """Write the conversations of trace files, one a line; replay reads the same turns in them as in the files.

    A task of which no answer was recorded is skipped: there is no conversation.

    Args:
        files: Of any format; see `read_traces`.
        write: Takes a line with its end.
        tools: What the model could call in the conversations that do not say.

    Raises:
        TraceError: A file can't be read.
    """
    found = Converted()
    for name, item in read_conversations(files):
        if isinstance(item, Conversation):
            if tools and not item.setting.tools:
                item = replace(item, setting=replace(item.setting, tools=tuple(tools)))
            _count(found, name, item)
            write(f"{json_line(item.row)}\n")
        elif isinstance(item, Turn):
            found.skip(Skipped(item.file, item.line, "no answer is recorded: agentspec replay reads it as it is"))
        else:
            found.skip(item)
    return found


def json_line(row: Mapping[str, Any], **how: Any) -> str:  # noqa: ANN401
    """A row of a trace file, without its end.

    Args:
        row: Any; half of a character that was cut in two is text, but not UTF-8: its row is written in ASCII.
        how: What `json.dumps` takes.
    """
    line = json.dumps(row, ensure_ascii=False, **how)
    try:
        line.encode()
    except UnicodeEncodeError:
        line = json.dumps(row, **how)
    return line


def _count(found: Converted, name: str, conversation: Conversation) -> None:
    counts = found.formats.setdefault(name, Counts())
    counts.conversations += 1
    for each in conversation.turns():
        if isinstance(each, Turn):
            counts.add(each)
        else:
            found.skip(each)
