"""Whether recorded token ids are of the tokenizer at hand: another one's would be other text, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agentspec.chat.messages import read_messages
from agentspec.replay.turns import Turn

Spell = Callable[[int], bytes]


def own_ids(turn: Turn, spell: Spell, text: Spell) -> tuple[int, ...]:
    """The recorded tokens, if there are any and they say here what was recorded; else none.

    Where all that the model wrote was recorded, they must say just that, up to a stop text; else what the message has
    of it. Control tokens are left out of both, since answers show some of them and hide others.

    Args:
        turn: Any.
        spell: A token's text, or a control token's name; raises IndexError for a token that there isn't.
        text: Likewise, but nothing for a control token.
    """
    if turn.answer is None or not turn.tokens:
        return ()
    try:
        said = b"".join(map(text, turn.tokens)).decode(errors="replace")
        names = {spell(token).decode(errors="replace") for token in turn.tokens if not text(token)}
    except IndexError:
        return ()
    said = _without(said, names)
    if turn.written is not None:
        written = _without(turn.written, names)
        rest = said.removeprefix(written)
        stops = turn.params.get("stop") or ()
        ended = not rest or any(rest.startswith(stop) for stop in ([stops] if isinstance(stops, str) else stops))
        return turn.tokens if said.startswith(written) and ended else ()
    parts = [part for each in _parts(turn.answer) if (part := _without(each, names).strip())]
    return turn.tokens if parts and all(part in said for part in parts) else ()


def _without(text: str, names: Iterable[str]) -> str:
    for name in filter(None, names):
        text = text.replace(name, "")
    return text


def _parts(answer: Mapping[str, Any]) -> list[str]:
    """What a message surely has of the text that the model wrote: its content, and the names that it called."""
    (read,) = read_messages([answer])
    return [read["content"], *(call["function"]["name"] for call in read.get("tool_calls", ()))]
