"""The parser of answers that are nothing but text."""

from __future__ import annotations

from agentspec.chat.base import Delta, TextDelta


class PlainParser:
    """Everything is text, whatever it looks like."""

    def feed(self, text: str) -> list[Delta]:
        """The text as it came."""
        return [TextDelta(text)] if text else []

    def finish(self) -> list[Delta]:
        """Nothing is held back."""
        return []
