"""Edits of a text: `{"instruction", "context", "input", "output"}`.

Source: this project; what code-editing benchmarks such as EditEval come to. No answer of a model is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.categories import Category
from agentspec.replay.readers.base import Format, Record, has_keys, rows
from agentspec.replay.readers.tasks import task
from agentspec.replay.turns import Turn

_NO_INSTRUCTION = re.compile(r"\s*\(.*\)\s*", re.DOTALL)


def read(record: Record) -> Iterator[Turn]:
    """The edit as a user's message that shows the code and asks for all of it, changed, in one fence.

    A context with a placeholder in double braces is a harness's template and left out. An instruction that is only a
    remark in brackets asks for nothing a model could know: such a row is not used.

    Raises:
        TraceError: The row can't be used.
    """
    texts = {key: _text(record.value, key) for key in ("instruction", "context", "input", "language")}
    if not texts["input"].strip():
        raise TraceError("input is missing or empty")
    if not texts["instruction"].strip() or _NO_INSTRUCTION.fullmatch(texts["instruction"]):
        raise TraceError("the instruction says nothing about the change")
    yield task(record, ({"role": "user", "content": _ask(texts)},), Category.EDIT)


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise TraceError(f"{key} is not a string")
    return value or ""


def _ask(texts: Mapping[str, str]) -> str:
    code, context = texts["input"].strip("\n"), texts["context"].strip("\n")
    fence = "```"
    while fence in code or fence in context:
        fence += "`"
    parts = [texts["instruction"].strip()]
    if context.strip() and "{{" not in context:
        parts.append(f"Context:\n\n{fence}{texts['language']}\n{context}\n{fence}")
    parts.append(f"The code:\n\n{fence}{texts['language']}\n{code}\n{fence}")
    parts.append("Answer with the whole code after the change, in one fenced block, and nothing else.")
    return "\n\n".join(parts)


FORMAT = Format("edits", "edits of a text", "instruction and input", has_keys("instruction", "input"), rows(read))
