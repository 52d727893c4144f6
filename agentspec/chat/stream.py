"""From tokens to text while they arrive: whole characters only, and nothing of a stop string."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence

from agentspec.grammar.vocabulary import Vocabulary


class Detokenizer:
    """Turns tokens into text as they come, at a cost per token that does not grow.

    What is given out is whole characters, and all of it together is the text of all tokens at once: bytes that are no
    character become U+FFFD, a character that is cut off by the end becomes one. Control tokens have no text, unless
    they are asked for.
    """

    def __init__(self, vocabulary: Vocabulary, *, visible: Iterable[str] = ()) -> None:
        """For one output.

        Args:
            vocabulary: Of the model that writes.
            visible: Names of control tokens that show as text, such as a format's markers.
        """
        self._text = vocabulary.text
        names = set(visible)
        self._visible = {token: name.encode() for token, name in vocabulary.special.items() if name in names}
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, token: int) -> str:
        """The characters that `token` completes."""
        return self._decoder.decode(self._text(token) or self._visible.get(token, b""))

    def finish(self) -> str:
        """What is left at the end: one U+FFFD if a character was cut off."""
        return self._decoder.decode(b"", final=True)


class StopText:
    """Cuts text just before the first stop string, however the text is split.

    The first is the one that is complete first; of two that are complete with the same character, the longer one.

    Attributes:
        found: The stop string that was completed, if one was; from then on there is no more text.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.found: str | None = None

    def feed(self, text: str, *, active: bool = True) -> str:
        """What may be shown of the text so far and was not before.

        Args:
            text: What comes next.
            active: Whether a stop string that is completed in it counts; one that does not stays in the text.
        """
        if self.found is not None:
            return ""
        seen = self._held + text
        first = self._first(seen) if active else None
        if first is not None:
            start, end = first
            self.found, self._held = seen[start:end], ""
            return seen[:start]
        held = self._possible(seen)
        self._held = seen[len(seen) - held :]
        return seen[: len(seen) - held]

    def finish(self) -> str:
        """What was held back as the possible beginning of a stop string that did not come."""
        held, self._held = self._held, ""
        return held

    def _first(self, seen: str) -> tuple[int, int] | None:
        """Where the first stop string that ends in the new text begins, and where it ends."""
        ends: list[tuple[int, int]] = []
        for stop in self._stops:
            start = seen.find(stop, max(0, len(self._held) - len(stop) + 1))
            if start >= 0:
                ends.append((start + len(stop), start))
        return min(ends)[::-1] if ends else None

    def _possible(self, seen: str) -> int:
        """How many of the last characters may turn out to begin a stop string."""
        return max((overlap(seen, stop) for stop in self._stops), default=0)


def overlap(seen: str, marker: str) -> int:
    """The length of the longest end of `seen` that `marker` begins with and goes beyond: what to hold back for it."""
    for size in range(min(len(seen), len(marker) - 1), 0, -1):
        if seen.endswith(marker[:size]):
            return size
    return 0


class TextStream:
    """One output's text as it may be shown: characters whole, cut before the first stop string."""

    def __init__(
        self, vocabulary: Vocabulary, *, stops: Sequence[str] = (), min_tokens: int = 0, visible: Iterable[str] = ()
    ) -> None:
        """For one output.

        Args:
            vocabulary: Of the model that writes.
            stops: Stop strings.
            min_tokens: No stop string that is completed before this many tokens counts.
            visible: Names of control tokens that show as text.
        """
        self._detokenizer = Detokenizer(vocabulary, visible=visible)
        self._stop = StopText(stops)
        self._min_tokens = min_tokens
        self._count = 0

    @property
    def stopped(self) -> bool:
        """Whether a stop string was completed: the token that did it is the output's last one."""
        return self._stop.found is not None

    @property
    def stop_text(self) -> str | None:
        """The stop string that was completed, if one was."""
        return self._stop.found

    def feed(self, token: int) -> str:
        """What may be shown after `token`; an end token is not fed."""
        self._count += 1
        return self._stop.feed(self._detokenizer.feed(token), active=self._count >= self._min_tokens)

    def finish(self) -> str:
        """What is left to show at the end."""
        return self._stop.feed(self._detokenizer.finish(), active=False) + self._stop.finish()


class StopRule:
    """What the engine asks after each token of one request: does the output end with it?"""

    def __init__(
        self, vocabulary: Vocabulary, stops: Sequence[str], *, min_tokens: int = 0, visible: Iterable[str] = ()
    ) -> None:
        """For one output; see `TextStream`."""
        stream = TextStream(vocabulary, stops=stops, min_tokens=min_tokens, visible=visible)
        self._stream = stream if stops else None

    def feed(self, token: int) -> bool:
        """Whether `token` completes a stop string. To be called once for each token, in order."""
        if self._stream is None:
            return False
        self._stream.feed(token)
        return self._stream.stopped
