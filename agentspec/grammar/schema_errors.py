"""What of a JSON Schema can't be enforced, by keyword and JSON path, from what the compiler says of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agentspec.errors import GrammarError
from agentspec.grammar.schema_parts import parts
from agentspec.grammar.schema_rewrites import MOST_TOLD_APART, MOST_UNLIKE, rewritten

THE_SCHEMA = "the JSON schema "
"""How a complaint begins that is about all of it, so that there is no keyword to look for."""

_REFUSED = "can't be enforced: "
_COMPILER = "failed to compile JSON schema: "
_KEYWORDS = {
    "Pointer": ("$ref",),
    "Resource": ("$ref", "$schema"),
    "Unable to determine if regex is empty": ("pattern",),
    "Unknown format": ("format",),
    "Invalid type": ("type",),
    "circular references": ("$ref",),
    "min/maxProperties": ("minProperties", "maxProperties"),
    "oneOf": ("oneOf",),
    "patternProperty": ("patternProperties",),
    "regex parse error": ("pattern",),
}
"""What the compiler's complaint begins with, and the keywords that it may be about; for the rest, those it names."""

_BY_VALUE = frozenset({"$ref", "$schema", "format", "pattern", "type"})
_IN_OUR_WORDS = {
    "Unable to determine if regex is empty": "with length limits or a format beside it, it is too much: drop one",
    "circular references": "it leads back to itself and has other keywords beside it: put it alone",
    "oneOf": "its alternatives must not hold at once, as told from types, constants or required keys: use anyOf",
    "patternProperty": "two of them may name the same key",
}


def refusal(keyword: str, path: str, reason: str) -> GrammarError:
    """The error for a keyword that was found out before the compiler saw it."""
    return GrammarError(f"{THE_SCHEMA}{_REFUSED}{_place(keyword, path)}: {reason}")


def explain(error: GrammarError, schema: Mapping[str, Any], subject: str) -> str:
    """One line that says what of `schema` can't be enforced, and where it stands, if the compiler's words tell.

    Args:
        error: From compiling, a `refusal`, or from the checks before, whose words begin with `THE_SCHEMA`.
        schema: What was to be enforced.
        subject: What the schema is of, for the line's beginning.
    """
    reason = str(error).split(_REFUSED)[-1].split(_COMPILER)[-1]
    if reason.startswith(subject):
        return reason
    if reason.startswith(("'", THE_SCHEMA)):
        return f"{subject} {_REFUSED}{reason}"
    begins = next((start for start in _KEYWORDS if reason.startswith(start)), "")
    words = "no grammar holds to it" if reason.startswith("Unimplemented keys") else _IN_OUR_WORDS.get(begins, reason)
    for path, part in parts(rewritten(json.loads(json.dumps(schema)))):
        for keyword, value in part.items():
            if _blamed(reason, begins, keyword, value):
                return f"{subject} {_REFUSED}{_place(keyword, path)}: {_limit(keyword, value) or words}"
    return f"{subject} {_REFUSED}{words}"


def _place(keyword: str, path: str) -> str:
    return f"{keyword!r} at {' '.join(path.splitlines())}"  # a property may have a line break in its name


def _limit(keyword: str, value: Any) -> str:  # noqa: ANN401 (JSON)
    """Of the rewrites, which one it passed, in words."""
    if keyword == "oneOf" and len(value) > MOST_TOLD_APART:
        return f"it has {len(value)} alternatives, at most {MOST_TOLD_APART} are told apart by required keys: use anyOf"
    if keyword in ("not", "if") and any(len(text) > MOST_UNLIKE for text in _texts(value)):
        return f"a text of more than {MOST_UNLIKE} characters can't be excluded"
    return ""


def _texts(schema: object) -> list[str]:
    found = [part.get("const") for _, part in parts(schema)] if isinstance(schema, Mapping) else []
    return [text for text in found if isinstance(text, str)]


def _blamed(reason: str, begins: str, keyword: str, value: object) -> bool:
    if begins and keyword not in _KEYWORDS[begins]:
        return False
    if keyword in _BY_VALUE:
        return isinstance(value, str) and " ".join(value.split()).lstrip("#") in reason
    return bool(begins) or re.search(rf"(?<![\w$]){re.escape(keyword)}(?!\w)", reason) is not None
