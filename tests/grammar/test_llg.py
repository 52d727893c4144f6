"""Cursors are values: where a path leads depends on the path alone, and the mask tells exactly what may follow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llguidance.gbnf_to_lark import gbnf_to_lark
from toy_vocabulary import EOS, IM_END, MERGING, TV, accepts, ids, walk

from agentspec.errors import GrammarDeadEndError, GrammarError
from agentspec.grammar.llg import compile_lark, lark_guide, regex_guide
from agentspec.grammar.schema import schema_guide
from agentspec.grammar.vocabulary import Vocabulary

AB = {"type": "object", "properties": {"a": {"enum": ["b"]}}, "required": ["a"], "additionalProperties": False}
MOOD = {**AB, "properties": {"mood": {"enum": ["ok", "bad"]}}, "required": ["mood"]}
STATUS = {"type": "object", "properties": {"status": {"enum": ["ok"]}, "n": {"type": "integer"}}}
STATUS |= {"required": ["status", "n"], "additionalProperties": False}
GUIDES = [
    schema_guide(TV, AB),
    schema_guide(TV, {"type": "object", "properties": {"x": {"type": "array", "items": {"type": "string"}}}}),
    regex_guide(TV, "(?:a|true)+[😀-🙏]?"),
    lark_guide(TV, 'start: "(" start ")" | /[0-9]+/'),
]


def test_the_end_token_closes_what_is_complete_and_nothing_follows_it() -> None:
    # The grammar is complete after the brace: llguidance has stopped by then, and counts no end token.
    complete = walk(schema_guide(TV, AB), [*b'{"a": "b"}'])
    assert complete is not None
    assert complete.accepting
    assert ids(complete.mask()) == [EOS, IM_END]
    assert complete.advance(10) is None
    for end in (EOS, IM_END):
        ended = complete.advance(end)
        assert ended is not None
        assert [ended.advance(token) for token in (10, 123, EOS)] == [None, None, None]
        assert ended.accepting
        assert ids(ended.mask()) == [EOS, IM_END]  # a row behind the end is still computed: it must not be a dead end
        assert ended.forced(9) == ()


def test_an_illegal_token_changes_nothing() -> None:
    place = walk(schema_guide(TV, AB), [*b'{"a": "b"'])
    assert place is not None
    before = ids(place.mask())
    assert place.advance(44) is None
    assert ids(place.mask()) == before == [125]
    assert place.advance(125) is not None


def test_a_token_of_several_bytes_counts_as_its_bytes() -> None:
    merged = walk(schema_guide(TV, AB), [*b'{"a": "b', 260])
    assert merged is not None
    assert merged.accepting


@pytest.mark.parametrize("draft", [b"```json\n", b'{"color": "red"}', b" null", b'{"mood": "good"}'])
def test_a_draft_that_the_grammar_refuses_is_cut_where_they_part(draft: bytes) -> None:
    cursor, taken = schema_guide(TV, MOOD).start(), 0
    for token in draft:
        following = cursor.advance(token)
        if following is None:
            break
        cursor, taken = following, taken + 1
    assert taken == {b"`": 0, b" ": 0, b"{": 2 if b"color" in draft else 10}[draft[:1]]
    assert cursor.mask() is not None  # and the matcher is well


def test_forced_text_is_only_a_guess_where_no_tokenizer_tells_the_split() -> None:
    start = schema_guide(TV, STATUS).start()
    assert start.forced(99) == (258, 115, 116, 97, 116, 117, 115, 264, 34, 111, 107, 261, 110, 264)
    assert start.forced(3) == (258, 115, 116)
    assert ids(start.mask()) == [123, 258]  # brace then quote is as legal as the token that is both
    assert walk(schema_guide(TV, STATUS), [123, *b'"status"']) is not None


def test_forced_text_is_the_tokenizers_split_where_there_is_one() -> None:
    canonical = Vocabulary(TV.tokens, special=TV.special, eos=[EOS], encode=TV.engine.greedy_tokenize)
    start = schema_guide(canonical, AB).start()
    assert start.forced(9) == (258, 97, 264, 34, 98, 260)
    assert ids(start.mask()) == [258]
    assert start.advance(123) is None  # what the mask leaves out may not follow
    complete = walk(schema_guide(canonical, AB), start.forced(9))
    assert complete is not None
    assert complete.forced(9) == (EOS,)


def test_forced_text_may_be_split_as_it_is_with_what_follows_it() -> None:
    cursor = compile_lark(MERGING, 'start: "[" "{}}" ("]" | ",")').start().advance(ord("["))
    assert cursor is not None
    assert (MERGING.encode("{}}]"), MERGING.encode("{}},")) == ([123, 259, 93], [260, 258])
    assert ids(cursor.mask()) == [123, 260]  # and not 123 alone, as for the text without what follows
    assert walk(compile_lark(MERGING, 'start: "{}}" ("]" | ",")'), [260, 258]) is not None


def test_ids_without_text_are_masked() -> None:
    start = schema_guide(TV, {"type": "boolean"}).start()
    assert ids(start.mask(), 400) == [102, 116, 262]
    padded = Vocabulary([*TV.tokens, *[None] * 51], special=TV.special, eos=[EOS])
    assert ids(regex_guide(padded, "(?s:.*)").start().mask(), 400) == [
        *(byte for byte in range(256) if byte < 0x80 or 0xC2 <= byte < 0xF5),
        EOS,
        *(token for token in range(258, 269) if token != 266),
    ]
    assert [start.advance(token) for token in (300, 5_000, -1)] == [None, None, None]


@pytest.mark.parametrize(
    ("document", "legal"),
    [
        ([0xF0, 0x9F, 0x98, 0xA8], True),
        ([265, 152, 168], True),
        ([265, 266], True),
        ([265, 34], False),  # a quote inside a character
        ([0xF0, 0x9F, 0x99, 0x90], False),  # one past the range
    ],
)
def test_characters_may_come_in_any_split(document: list[int], legal: bool) -> None:
    assert (walk(regex_guide(TV, "[😀-🙏]+"), document) is not None) == legal


def test_inside_a_character_only_what_stays_in_the_range_may_follow() -> None:
    start = regex_guide(TV, "[😀-🙏]+").start()
    assert ids(start.mask()) == [0xF0, 265]
    for begun in ([0xF0, 0x9F], [265]):
        half = walk(regex_guide(TV, "[😀-🙏]+"), begun)
        assert half is not None
        assert ids(half.mask()) == [0x98, 0x99, 266]
        last = half.advance(0x99)
        assert last is not None
        assert ids(last.mask()) == [*range(0x80, 0x90)]


def test_an_enum_of_an_emoji_is_spelled_in_any_split() -> None:
    for split in ([*"😨".encode()], [265, 152, 168]):
        whole = walk(schema_guide(TV, {"enum": ["😨ok"]}), [34, *split, *b'ok"'])
        assert whole is not None
        assert whole.accepting


def test_a_grammar_that_the_vocabulary_cannot_spell_is_a_dead_end() -> None:
    small = Vocabulary([b"a", b"b", b""], special={2: "<e>"}, eos=[2])
    place = walk(lark_guide(small, 'start: "a" "c"'), [0])
    assert place is not None
    with pytest.raises(GrammarDeadEndError, match="no token of the vocabulary may come next"):
        place.mask()


@pytest.mark.parametrize("bad", ["start: a", "banana", "start: /[/"])
def test_a_grammar_that_cannot_be_read_is_one_line(bad: str) -> None:
    with pytest.raises(GrammarError) as caught:
        lark_guide(TV, bad)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("regex", "text", "legal"),
    [
        ("", "", True),
        ("", "x", False),
        ("/x/", "/x/", True),
        ("^a$", "a", True),
        ("a|b", "ab", False),
        ('"\\d', '"1', True),
    ],
)
def test_a_regex_matches_as_a_whole(regex: str, text: str, legal: bool) -> None:
    assert accepts(regex_guide(TV, regex), text) == legal


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(GUIDES), st.lists(st.integers(0, 10_000), max_size=24), st.integers(0, 268))
def test_a_place_depends_on_its_path_alone(guide: object, choices: list[int], illegal: int) -> None:
    cursor, path, seen = guide.start(), [], []  # type: ignore[attr-defined]
    for choice in choices:
        legal = ids(cursor.mask())
        seen.append(cursor)
        if illegal not in legal:
            assert cursor.advance(illegal) is None
        if not path or path[-1] not in TV.eos:
            cursor = cursor.advance(legal[choice % len(legal)])
            path.append(legal[choice % len(legal)])
    for length, old in enumerate(seen[: len(path)]):
        fresh = walk(guide, path[:length])  # type: ignore[arg-type]
        assert fresh is not None
        assert np.array_equal(fresh.mask(), old.mask())
        assert (fresh.accepting, fresh.forced(9)) == (old.accepting, old.forced(9))


def test_gbnf_is_told_as_such_and_what_it_says_of_the_converter_holds() -> None:
    gbnf = 'root ::= "a" tail\ntail ::= [0-9]+\n'
    with pytest.raises(GrammarError, match=r"^the grammar is llama.cpp's GBNF \(root ::= ...\), and Lark is needed"):
        lark_guide(TV, gbnf)
    assert walk(lark_guide(TV, gbnf_to_lark(gbnf)), list(b"a12")) is not None
