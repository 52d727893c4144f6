"""Masks of a vocabulary's tokens: made, asked, and read back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from agentspec.grammar.base import Mask
from agentspec.grammar.vocabulary import Vocabulary


def allows(mask: Mask, token: int) -> bool:
    """Whether the mask has `token`."""
    return 0 <= token < 32 * len(mask) and bool(mask[token >> 5] >> (token & 31) & 1)


def members(mask: Mask, most: int) -> list[int]:
    """The tokens that the mask has; none if they are more than `most`."""
    words = np.flatnonzero(mask)
    if len(words) > most or int(np.bitwise_count(mask[words]).sum()) > most:
        return []
    bits = np.unpackbits(mask[words].view(np.uint8), bitorder="little").reshape(len(words), 32)
    rows, columns = np.nonzero(bits)
    tokens: list[int] = (words[rows] * 32 + columns).tolist()
    return tokens


def pack(vocabulary: Vocabulary, tokens: Iterable[int]) -> Mask:
    """The mask of just these tokens."""
    mask: Mask = np.zeros((len(vocabulary) + 31) // 32, dtype=np.uint32)
    ids = np.fromiter(tokens, dtype=np.uint32)
    np.bitwise_or.at(mask, ids >> 5, np.uint32(1) << (ids & 31))
    mask.flags.writeable = False
    return mask


def all_but(vocabulary: Vocabulary, tokens: Sequence[int]) -> Mask | None:
    """The mask of all tokens but these; None if there are none of these."""
    if not tokens:
        return None
    past = range(len(vocabulary), (len(vocabulary) + 31) // 32 * 32)
    mask = ~pack(vocabulary, (*tokens, *past))
    mask.flags.writeable = False
    return mask


@lru_cache(maxsize=8)
def end_mask(vocabulary: Vocabulary) -> Mask:
    """The mask of the end tokens."""
    return pack(vocabulary, vocabulary.eos)
