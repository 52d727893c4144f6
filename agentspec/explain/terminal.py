"""An account for a terminal: coloured where it can be, else with each source named beside its text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from rich.table import Table
from rich.text import Text

from agentspec.explain.account import TARGET, Account, Piece, Rejected
from agentspec.explain.styles import style_of

_SHOWN = 40  # characters of a rejected branch


def coloured(account: Account, *, rejected: bool) -> Text:
    """The answer in its sources' colours; with `rejected`, wrong guesses struck out where they were made."""
    text = Text()
    for style, parts in groupby(_styled(account, rejected=rejected), key=lambda part: part[0]):
        text.append("".join(part for _, part in parts), style=style)
    return text


def _styled(account: Account, *, rejected: bool) -> Iterator[tuple[str, str]]:
    for item in _items(account, rejected=rejected):
        if isinstance(item, Rejected):
            yield "dim strike", visible(item.text, _SHOWN)
        else:
            yield style_of(item.source).terminal, harmless(item.text)


def listed(account: Account, *, rejected: bool) -> Iterator[tuple[str, str, str]]:
    """Runs of tokens of one round and source: the round, the source, the text in visible characters."""
    for (number, source, wrong), items in groupby(_items(account, rejected=rejected), _run_of):
        texts = [item.text for item in items]
        if wrong:
            yield from ((str(number), f"({source})", visible(text, _SHOWN)) for text in texts)
        else:
            yield str(number), source, visible("".join(texts))


def legend(account: Account) -> Text:
    """Each source that drafted, in its own style."""
    text = Text()
    for source in (*account.sources, TARGET):
        style = style_of(source)
        text.append(source, style=style.terminal)
        text.append(f"  {style.meaning}\n", style="dim")
    text.rstrip()
    return text


def marks(account: Account, *, rejected: bool) -> Text:
    """What the names and signs in a list of runs mean: the legend, and each sign that is there."""
    text, shown = legend(account), "".join(run for _, _, run in listed(account, rejected=rejected))
    signs = {sign: meaning for sign, meaning in _MEANINGS.items() if sign in shown}
    if rejected and account.rejected:
        signs["(source)"] = "a wrong guess, which is not in the text"
    for sign, meaning in signs.items():
        text.append(f"\n{sign}  {meaning}")
    return text


def visible(text: str, most: int | None = None) -> str:
    """A text on one line, in characters that a terminal can't obey, cut to a length."""
    if not text.strip(" "):
        text = "␣" * len(text)
    shown = "".join(char if char.isprintable() else _SIGNS.get(char, "?") for char in text)
    return shown if most is None or len(shown) <= most else f"{shown[: most - 1]}…"


def harmless(text: str) -> str:
    """A text as it is, but for characters that a terminal would obey."""
    return "".join(char if char.isprintable() or char in "\n\t" else "?" for char in text)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table by segment; see `Counts`."""

    segment: str
    source: str
    tokens: int
    forwards: int
    drafted: int
    accepted: int


def rows(account: Account) -> Iterator[Row]:
    """Of each segment its counts, then of each source that drafted there."""
    for segment, counts in [*account.segments.items(), ("all", account.total)]:
        drafted, accepted = counts.drafted, counts.accepted
        name = segment.replace("_", " ")
        yield Row(name, "", counts.tokens, counts.forwards, drafted.total(), accepted.total())
        for source in account.sources:
            if drafted[source]:
                yield Row("", source, 0, 0, drafted[source], accepted[source])


def fill(table: Table, account: Account) -> None:
    """Add the table by segment to one with the columns segment, source, tokens, forwards and three of the drafts."""
    for row in rows(account):
        counts = (row.drafted, row.accepted, row.drafted - row.accepted)
        table.add_row(
            row.segment,
            Text().append(row.source, style_of(row.source).terminal),  # the cell's padding is not underlined
            *("" if row.source else f"{count:,}" for count in (row.tokens, row.forwards)),
            *(f"{count:,}" for count in counts),
        )


_SIGNS = {"\n": "⏎", "\t": "⇥"}
_MEANINGS = {"⏎": "a line break", "⇥": "a tab", "␣": "a blank", "…": "more of it"}


def _items(account: Account, *, rejected: bool) -> Iterator[Piece | Rejected]:
    """Pieces, and before each the branches that were rejected in its stead."""
    wrong = iter(account.rejected if rejected else ())
    branch = next(wrong, None)
    for place, piece in enumerate(account.pieces):
        while branch and branch.place <= place:
            yield branch
            branch = next(wrong, None)
        yield piece


def _run_of(item: Piece | Rejected) -> tuple[int, str, bool]:
    return item.round, item.source, isinstance(item, Rejected)
