"""The toy vocabulary of the grammar and chat tests: every byte, two end tokens, some tokens of several bytes."""

from __future__ import annotations

from collections.abc import Iterable

from agentspec.grammar.base import Cursor, Guide, Mask
from agentspec.grammar.llg import allows
from agentspec.grammar.vocabulary import Vocabulary

EOS, IM_END = 256, 257
MERGED = [b'{"', b'":', b'"}', b'", "', b"true", b"\n\n", b'": ', b"\xf0\x9f", b"\x98\x80", b'"a', b"},"]
TOKENS = [*(bytes([byte]) for byte in range(256)), b"", b"", *MERGED]
SPECIAL = {EOS: "<|eos|>", IM_END: "<|im_end|>"}
TV = Vocabulary(TOKENS, special=SPECIAL, eos=[EOS, IM_END])


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
    return [token for token in range(size) if allows(mask, token)]


def accepts(guide: Guide, text: str) -> bool:
    """Whether the text is a whole output, one byte a token."""
    cursor = walk(guide, text.encode())
    return cursor is not None and cursor.accepting
