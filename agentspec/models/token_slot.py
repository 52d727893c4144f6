"""A slot for a target without a cache: a scripted one, or a recording in its place."""

from __future__ import annotations

from collections.abc import Sequence

from agentspec.models.base import Row
from agentspec.models.prefix import shared_prefix


class TokenSlot:
    """A slot that holds tokens and no tensors."""

    def __init__(self, tokens: Sequence[int] = ()) -> None:
        self.tokens: list[int] = list(tokens)

    def sync(self, tokens: Sequence[int]) -> Sequence[int]:
        """Keep the shared prefix, return what is pending."""
        keep = len(self.tokens)
        if keep >= len(tokens) or self.tokens != tokens[:keep]:  # else they go on from these, as from round to round
            keep = shared_prefix(self.tokens, list(tokens[:-1]))
            del self.tokens[keep:]
        return tokens[keep:]

    def commit(self, row: Row, path: Sequence[int]) -> None:
        """Keep the pending tokens and the accepted nodes."""
        self.tokens += [*row.pending, *(row.draft.tokens[node] for node in path)]

    def fork(self, length: int | None = None) -> TokenSlot:
        """A copy of the first tokens."""
        return TokenSlot(self.tokens[:length])

    def close(self) -> None:
        """Forget the tokens."""
        self.tokens.clear()
