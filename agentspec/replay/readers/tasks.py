"""Turns of rows that only ask: no answer of a model is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentspec.replay.categories import Category
from agentspec.replay.readers.base import Record
from agentspec.replay.turns import Turn


def task(
    record: Record,
    messages: tuple[Mapping[str, Any], ...],
    category: Category,
    *,
    tools: tuple[Mapping[str, Any], ...] = (),
) -> Turn:
    """The turn that answers these messages, of a row whose name is its `id`; where there are tools it must call."""
    name = record.value.get("id")
    trace_id = name if isinstance(name, str) else f"line {record.line}"
    return Turn(trace_id, len(messages), messages, tools, record.file, record.line, bool(tools), category)
