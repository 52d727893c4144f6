"""The kinds of answers that a report tells apart: what speculation is worth differs from one to the other.

An answer's category is the recorded one's, not that of what the model writes this time:

- `TOOL_CALL`: the recorded message called tools, or the row asks for calls (a BFCL row).
- `EDIT`: the row asks for a changed text (an edit row), or the recorded answer has SEARCH/REPLACE blocks.
- `JSON`: the row has a response format, which holds the answer to a JSON document.
- `FREE_JSON`: the recorded answer is one JSON document, and nothing but the prompt asks for it.
- `CODE`: more than half of the recorded answer is inside code fences, or the row's own category says code.
- `PROSE`: whatever is none of these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Category(StrEnum):
    """A kind of answer; its value is its name in reports and options."""

    TOOL_CALL = "tool call"
    EDIT = "edit"
    JSON = "json"
    FREE_JSON = "free json"
    CODE = "code"
    PROSE = "prose"


_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_ONE_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*)\n```\s*", re.DOTALL)
_EDIT = re.compile(r"^<{5,9} SEARCH$", re.MULTILINE)


def of_message(message: Mapping[str, Any], *, held: bool) -> Category:
    """The category of a recorded answer, an OpenAI message; `held`: whether a response format held it to JSON."""
    if message.get("tool_calls"):
        return Category.TOOL_CALL
    if held:
        return Category.JSON
    text = _text(message.get("content"))
    if _is_document(text):
        return Category.FREE_JSON
    if _EDIT.search(text):
        return Category.EDIT
    fenced = sum(len(found.group()) for found in _FENCED.finditer(text))
    return Category.CODE if 2 * fenced > len(text) else Category.PROSE


def of_name(name: object) -> Category:
    """The category of a prompt row that names its own: MT-bench's "coding" and others' "code"; prose otherwise."""
    return Category.CODE if name in ("code", "coding") else Category.PROSE


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _is_document(text: str) -> bool:
    fence = _ONE_FENCE.fullmatch(text)
    text = (fence.group(1) if fence else text).strip()
    if not text.startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
