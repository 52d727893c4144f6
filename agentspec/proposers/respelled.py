"""Known text in its other spelling: as it stands within a JSON string, or as what stands there means."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import groupby

from agentspec.grammar.vocabulary import Vocabulary

BORDER = -1
"""Stands in known text where nothing is followed any further."""
_ESCAPE = re.compile(r'\\(?:u[0-9a-fA-F]{4}(?:\\u[0-9a-fA-F]{4})?|["\\/bfnrt])')


def respelled(vocabulary: Vocabulary, tokens: Sequence[int], respell: Callable[[str], str]) -> list[int]:
    """Tokens of the same text in another spelling, as the tokenizer splits it, but for the parts that stay the same.

    Args:
        vocabulary: Of the tokens. Control tokens part the text, and each part ends with a border.
        tokens: Of the text.
        respell: `escaped` or `unescaped`.
    """
    spelled: list[int] = []
    for plain, run in groupby(map(vocabulary.text, tokens), key=bool):
        if plain:
            text = b"".join(run).decode(errors="replace")
            new = respell(text)
            spelled += vocabulary.encode(new) if new != text else ()
        spelled.append(BORDER)
    return spelled


def escaped(text: str) -> str:
    """The text as it is written within a JSON string. Only what must be escaped is, as models do."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def unescaped(text: str) -> str:
    """The text with each of JSON's escapes replaced by what it means."""
    return _ESCAPE.sub(_meaning, text)


def writes_escaped(vocabulary: Vocabulary, tokens: Sequence[int]) -> bool | None:
    """Whether the last line break was written as JSON's escape; None: there is none, nor an escaped quotation mark."""
    text = vocabulary.texts(tokens)
    plain = text.rfind(b"\n")
    escape = max(text.rfind(rb"\n"), text.rfind(rb"\""))
    return None if plain == escape else escape > plain


def _meaning(escape: re.Match[str]) -> str:
    try:
        return str(json.loads(f'"{escape[0]}"')).encode(errors="replace").decode()
    except ValueError:
        return escape[0]
