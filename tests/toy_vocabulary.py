"""The toy vocabulary of the grammar and chat tests: every byte, two end tokens, some tokens of several bytes."""

from __future__ import annotations

from collections.abc import Iterable

from agentspec.grammar.base import Cursor, Guide, Mask
from agentspec.grammar.masks import members
from agentspec.grammar.vocabulary import Vocabulary

EOS, IM_END = 256, 257
MERGED = [b'{"', b'":', b'"}', b'", "', b"true", b"\n\n", b'": ', b"\xf0\x9f", b"\x98\x80", b'"a', b"},"]
TOKENS = [*(bytes([byte]) for byte in range(256)), b"", b"", *MERGED]
SPECIAL = {EOS: "<|eos|>", IM_END: "<|im_end|>"}
TV = Vocabulary(TOKENS, special=SPECIAL, eos=[EOS, IM_END])
PAIRS = [b"},", b"}}", b"{}"]


def _merge(text: str) -> list[int]:
    """Bytes, and of the pairs the first wherever it stands, then the second, then the third."""
    parts = [bytes([byte]) for byte in text.encode()]
    for pair in PAIRS:
        for place in range(len(parts) - 1, 0, -1):
            if b"".join(parts[place - 1 : place + 1]) == pair:
                parts[place - 1 : place + 1] = [pair]
    return [MERGING.tokens.index(part) for part in parts]


MERGING = Vocabulary([*TOKENS[:258], *PAIRS], special=SPECIAL, eos=[EOS, IM_END], encode=_merge)
"""A tokenizer that splits `{}}` otherwise where a comma follows."""


def walk(guide: Guide, tokens: Iterable[int]) -> Cursor | None:
    """The place after the tokens, None if one of them may not come."""
    cursor: Cursor | None = guide.start()
    for token in tokens:
        if cursor is None:
            return None
        cursor = cursor.advance(token)
    return cursor


def ids(mask: Mask | None, size: int = 320) -> list[int]:
    """The ids that a mask allows."""
    assert mask is not None
    return [token for token in members(mask, 32 * len(mask)) if token < size]


def accepts(guide: Guide, text: str) -> bool:
    """Whether the text is a whole output, one byte a token."""
    cursor = walk(guide, text.encode())
    return cursor is not None and cursor.accepting
