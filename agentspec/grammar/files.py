"""Where the grammar files are: beside the package when it was installed, beside the checkout otherwise."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from agentspec.errors import GrammarError

_PACKAGE = Path(__file__).resolve().parent.parent
_FOLDERS = (_PACKAGE / "grammars", _PACKAGE.parent / "grammars")


@cache
def read_grammar(name: str) -> str:
    """The text of the grammar file `name`, which ends in `.lark`.

    Raises:
        GrammarError: There is none.
    """
    for folder in _FOLDERS:
        path = folder / name
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise GrammarError(f"grammar file {name!r} is in none of {', '.join(map(str, _FOLDERS))}: install agentspec again")
