"""Cursors that know their segment, whatever holds the text, and guess where nothing does."""

from __future__ import annotations

import pytest
from toy_vocabulary import TV

from agentspec.errors import GrammarError
from agentspec.grammar.base import FREE, Cursor
from agentspec.grammar.code_names import code_names
from agentspec.grammar.free_calls import free_calls
from agentspec.grammar.llg import LlgCursor
from agentspec.grammar.tools import read_tools
from agentspec.grammar.track import TrackedCursor, TrackedGuide, likely
from agentspec.segmenter import Segmenter
from agentspec.segments import Segment

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = read_tools(
    [{"function": {"name": "now"}}, {"function": {"name": "weather", "parameters": CITY}}],
)


def after(text: bytes) -> TrackedCursor:
    guide = TrackedGuide(FREE, TV, Segmenter(), guesses=free_calls(TV, TOOLS))
    cursor: TrackedCursor | None = guide.start()
    for token in text:
        assert cursor is not None
        cursor = cursor.advance(token)
    assert cursor is not None
    return cursor


def forced(cursor: Cursor) -> bytes:
    return b"".join(TV.tokens[token] for token in cursor.forced(99))


def test_a_boundary_inside_a_draft_is_seen_from_both_sides_of_it() -> None:
    before = after(b"So:\n```py\nx")
    inside, behind = before.advance(10), before.advance(34)
    assert (before.segment, inside.segment, behind.segment) == (Segment.CODE,) * 3  # type: ignore[union-attr]
    closed = after(b"So:\n```py\nx\n```")
    assert closed.segment == Segment.PROSE
    assert before.segment == Segment.CODE  # a cursor is a value


def test_a_call_that_nothing_holds_is_guessed_in_the_spelling_it_is_written_in() -> None:
    for written, follows in (
        (b'Sure:\n```json\n{"name": "no', b'w", "'),
        (b'{\n  "name":"wea', b'ther",'),
        (b'{"name": "now", "p', b'arameters": {}}'),
        (b'{"name": "now", "a', b'rguments": {}}'),
    ):
        cursor = after(written)
        assert cursor.mask() is None
        assert forced(cursor) == b""
        assert forced(likely(cursor)) == follows


def test_what_is_no_call_is_guessed_no_further() -> None:
    assert not after(b'{"nome').guesses
    assert not after(b"So {").guesses


def test_a_guess_whose_grammar_fails_is_dropped_and_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = after(b'{"na')
    assert before.guesses

    def fail(self: LlgCursor, token: int) -> None:
        raise GrammarError("too complex to go on")

    monkeypatch.setattr(LlgCursor, "advance", fail)
    following = before.advance(ord("m"))
    assert following is not None
    assert following.guesses == ()


def test_a_schema_may_mark_an_argument_as_code() -> None:
    parameters = {"properties": {"body": {"type": "string", "contentMediaType": "text/x-python"}, "to": {}}}
    assert code_names([parameters]) == {"body"}
