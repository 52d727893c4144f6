"""An account as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentspec.explain.account import TARGET, Account, Piece, Rejected
from agentspec.explain.frame import class_names, render, styled
from agentspec.explain.terminal import rows, visible

_SHOWN = 80  # characters of a rejected branch


def page(account: Account, *, title: str, facts: str, rejected: bool) -> str:
    """The page, for light and dark screens.

    Args:
        account: Of the answer.
        title: Above it, such as the model and the prompt.
        facts: A line below the title.
        rejected: Whether wrong guesses are shown from the start; the page has a switch.
    """
    names = class_names((*account.sources, TARGET))
    return render(
        "page.html.jinja",
        title=title,
        facts=facts,
        rejected=rejected,
        sources=styled(names),
        items=list(_items(account, names)),
        rows=list(rows(account)),
        names=names,
    )


def _items(account: Account, names: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Spans in order: pieces, and before them what was rejected in their stead."""
    wrong = list(account.rejected)
    before = 0
    for place, piece in enumerate(account.pieces):
        starts = first = piece.round != before
        while wrong and wrong[0].place <= place:
            yield _wrong(wrong.pop(0), names, starts=first)
            first = False
        before = piece.round
        yield {"wrong": False, "name": names[piece.source], "text": piece.text, "tip": tip(piece), "starts": starts}


def _wrong(branch: Rejected, names: dict[str, str], *, starts: bool) -> dict[str, Any]:
    tip = f"round {branch.round} · {branch.source} · score {branch.score:.2f} · {_nodes(branch.nodes)} rejected"
    text = visible(branch.text, _SHOWN)
    return {"wrong": True, "name": names[branch.source], "text": text, "tip": tip, "starts": starts}


def tip(piece: Piece) -> str:
    """What is shown of a piece that is pointed at."""
    score = "" if piece.score is None else f" · score {piece.score:.2f}"
    return f"round {piece.round} · {piece.source}{score} · {piece.segment.replace('_', ' ')}"


def _nodes(count: int) -> str:
    return f"{count} token" + ("s" if count > 1 else "")
