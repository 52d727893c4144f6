"""Text and tokens where some control tokens count as text: what markers are looked for in."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from agentspec.grammar.vocabulary import Vocabulary


class Spelling:
    """What tokens spell for one way of writing calls.

    Attributes:
        vocabulary: The model's.
        controls: Texts of the control tokens, and of those that are never split, that are markers, or part of one, by
            id. They count as text, and are how a call is marked where there are any.
    """

    def __init__(self, vocabulary: Vocabulary, markers: Iterable[str]) -> None:
        self.vocabulary = vocabulary
        listed = tuple(markers)
        named = (*vocabulary.special.items(), *vocabulary.whole.items())
        self.controls = {token: name for token, name in named if name and any(name in text for text in listed)}
        longest_first = sorted(self.controls.values(), key=len, reverse=True)
        self._names = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")") if longest_first else None

    def text(self, token: int) -> bytes:
        """What the token spells; nothing for other control tokens."""
        if token in self.controls:
            return self.controls[token].encode()
        return self.vocabulary.text(token)

    def tokens(self, text: bytes) -> list[int] | None:
        """Tokens that spell it, markers as control tokens where there are any; None if it ends within a character."""
        try:
            parts = self._apart(text.decode())
        except UnicodeDecodeError:
            return None
        ids = {name: token for token, name in self.controls.items()}
        split = self.vocabulary.engine.greedy_tokenize
        return [token for part in parts for token in ([ids[part]] if part in ids else split(part))]

    def rule(self, text: str) -> str:
        """The text as terms of a Lark rule: control tokens where there are any of that name, text otherwise."""
        ids = {name: token for token, name in self.controls.items()}
        return " ".join(f"<[{ids[part]}]>" if part in ids else json.dumps(part) for part in self._apart(text))

    def along(self, text: bytes) -> list[int]:
        """The tokens that spell a first part of `text`, or all of it and more."""
        longer = (token for token in self.holding(text[-1:]) if self.text(token).startswith(text))
        by_text = _by_text(self.vocabulary)
        shorter = (token for size in range(1, len(text)) for token in by_text.get(text[:size], ()))
        whole = (token for token, name in self.controls.items() if text.startswith(name.encode()))
        return list(dict.fromkeys((*longer, *shorter, *whole)))

    def holding(self, part: bytes) -> list[int]:
        """The tokens whose text has `part` in it."""
        controls = (token for token, name in self.controls.items() if part in name.encode())
        return [*_holding(self.vocabulary, part), *controls]

    def closing(self, marker: bytes, seen: bytes) -> list[int]:
        """The tokens that may complete `marker` behind `seen`."""
        size = min(len(seen), len(marker) - 1)
        ends = tuple(marker[i:] for i in range(1, size + 1) if seen.endswith(marker[:i]))
        texts = ((token, self.text(token)) for token in self.holding(marker[-1:]))
        return [token for token, text in texts if text.startswith(ends) or marker in text]

    def _apart(self, text: str) -> Sequence[str]:
        return [part for part in (self._names.split(text) if self._names else [text]) if part]


def overlap(seen: bytes, marker: bytes) -> int:
    """The length of the longest end of `seen` that `marker` begins with and goes beyond."""
    sizes = range(min(len(seen), len(marker) - 1), 0, -1)
    return next((size for size in sizes if seen.endswith(marker[:size])), 0)


@lru_cache(maxsize=32)
def _holding(vocabulary: Vocabulary, part: bytes) -> tuple[int, ...]:
    return tuple(token for token, text in enumerate(vocabulary.tokens) if part in text)


@lru_cache(maxsize=4)
def _by_text(vocabulary: Vocabulary) -> Mapping[bytes, Sequence[int]]:
    found: dict[bytes, list[int]] = defaultdict(list)
    for token, text in enumerate(vocabulary.tokens):
        found[text].append(token)
    return found
