"""An answer's account: who guessed each piece of it, and which guesses were wrong."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentspec.draft import ROOT, Draft
from agentspec.segments import Segment
from agentspec.trace import StepRecord, by_source

TARGET = "target"
"""The source of a token that nobody guessed: the target's own, one a round."""

_MOST_REJECTED = 24  # tokens of one wrong branch that are kept as text

Spell = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Piece:
    """A token of the answer.

    Attributes:
        text: The characters that it completes; may be empty.
        source: Who guessed it; `TARGET`: nobody.
        round: That wrote it, from 1.
        score: How sure its source was, in 0..1; None for the target's own.
        segment: Where it stands; see `StepRecord.token_segments`.
    """

    text: str
    source: str
    round: int
    score: float | None
    segment: Segment

    @property
    def wire(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "text": self.text,
            "source": self.source,
            "round": self.round,
            "score": None if self.score is None else round(self.score, 3),
            "segment": self.segment.value,
        }


@dataclass(frozen=True, slots=True)
class Rejected:
    """A branch of a draft that the target did not take.

    Attributes:
        place: Index of the piece in whose stead it was guessed.
        text: Of the branch, its first tokens.
        source: Who guessed its first token.
        round: In which, from 1.
        score: How sure the source was of its first token, in 0..1.
        nodes: How many draft nodes were lost, side branches included.
    """

    place: int
    text: str
    source: str
    round: int
    score: float
    nodes: int

    @property
    def wire(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "place": self.place,
            "text": self.text,
            "source": self.source,
            "round": self.round,
            "score": round(self.score, 3),
            "nodes": self.nodes,
        }


@dataclass(slots=True)
class Counts:
    """Of one segment, or of all.

    Attributes:
        tokens: Of the answer that stand there.
        forwards: Rounds that began there.
        drafted: Draft nodes that stood there, by source.
        accepted: Those that were accepted, by source.
    """

    tokens: int = 0
    forwards: int = 0
    drafted: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)

    @property
    def wire(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "tokens": self.tokens,
            "forwards": self.forwards,
            "drafted": self.drafted.total(),
            "accepted": self.accepted.total(),
            "rejected": self.drafted.total() - self.accepted.total(),
            "by_source": by_source(self.drafted, self.accepted),
        }


@dataclass(frozen=True, slots=True)
class Account:
    """Of a whole answer.

    Attributes:
        pieces: Its tokens, in order.
        rejected: Wrong branches, in the order of their places.
        segments: Counts by segment, in the order in which they were met.
        total: Counts of all.
    """

    pieces: tuple[Piece, ...]
    rejected: tuple[Rejected, ...]
    segments: dict[Segment, Counts]
    total: Counts

    @property
    def sources(self) -> tuple[str, ...]:
        """Who drafted anything, in the order of what was accepted."""
        return tuple(sorted(self.total.drafted, key=lambda source: (-self.total.accepted[source], source)))

    @property
    def wire(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "pieces": [piece.wire for piece in self.pieces],
            "rejected": [branch.wire for branch in self.rejected],
            "by_segment": {segment.value: counts.wire for segment, counts in self.segments.items()},
            "total": self.total.wire,
        }


def explain(rounds: Sequence[StepRecord], spell: Spell) -> Account:
    """Tell what each round brought.

    Args:
        rounds: Of `Result.rounds`.
        spell: `Engine.spell`.
    """
    pieces: list[Piece] = []
    rejected: list[Rejected] = []
    segments: dict[Segment, Counts] = {}
    total = Counts()
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    for number, record in enumerate(rounds, 1):
        rejected += _rejected(record, number, len(pieces), spell)
        for place, (token, segment) in enumerate(zip(record.tokens, record.token_segments, strict=True)):
            pieces.append(_piece(record, number, place, decoder.decode(spell(token)), segment))
        for counts in (segments.setdefault(record.segment, Counts()), total):
            counts.forwards += 1
        for node, source in enumerate(record.draft.sources):
            for counts in (segments.setdefault(record.segments[node], Counts()), total):
                counts.drafted[source] += 1
                counts.accepted[source] += node in record.path
    for piece in pieces:
        for counts in (segments.setdefault(piece.segment, Counts()), total):
            counts.tokens += 1
    return Account(tuple(pieces), tuple(rejected), segments, total)


def _piece(record: StepRecord, number: int, place: int, text: str, segment: Segment) -> Piece:
    if place < len(record.path):
        node = record.path[place]
        return Piece(text, record.draft.sources[node], number, record.draft.scores[node], segment)
    return Piece(text, TARGET, number, None, segment)


def _rejected(record: StepRecord, number: int, before: int, spell: Spell) -> Iterator[Rejected]:
    """The branches that leave the accepted path, by where they leave it."""
    draft, path = record.draft, record.path
    depth = {ROOT: 0, **{node: place + 1 for place, node in enumerate(path)}}
    wrong = [node for node, parent in enumerate(draft.parents) if parent in depth and node not in depth]
    for node in sorted(wrong, key=lambda node: depth[draft.parents[node]]):
        if depth[draft.parents[node]] >= len(record.tokens):  # behind the end of the answer
            continue
        below, line = _below(draft, node)
        text = b"".join(spell(draft.tokens[each]) for each in line[:_MOST_REJECTED]).decode(errors="replace")
        place = before + depth[draft.parents[node]]
        yield Rejected(place, text, draft.sources[node], number, draft.scores[node], below)


def _below(draft: Draft, root: int) -> tuple[int, list[int]]:
    """How many nodes hang below and at `root`, and its first branch."""
    inside, line = {root}, [root]
    for node in range(root + 1, len(draft)):
        if draft.parents[node] in inside:
            inside.add(node)
            if draft.parents[node] == line[-1]:
                line.append(node)
    return len(inside), line
