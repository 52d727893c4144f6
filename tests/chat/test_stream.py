"""Text as it may be shown: whole characters, cut before the first stop string, whatever the tokens were."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_vocabulary import EOS, IM_END, TOKENS, TV

from agentspec.chat.stream import Detokenizer, StopRule, StopText, TextStream
from agentspec.grammar.vocabulary import Vocabulary

FAMILY = "👩‍👩‍👧"


def deltas(tokens: list[int]) -> list[str]:
    detokenizer = Detokenizer(TV)
    return [*(detokenizer.feed(token) for token in tokens), detokenizer.finish()]


def test_a_delta_holds_whole_characters_only() -> None:
    assert deltas([111, 107, 32, 265, 266, 33]) == ["o", "k", " ", "", "😀", "!", ""]
    assert "".join(deltas([*FAMILY.encode()])) == FAMILY
    assert "".join(deltas([*b"    ."])) == "    ."


def test_a_character_that_is_cut_off_becomes_one_replacement() -> None:
    assert deltas([111, 265]) == ["o", "", "\ufffd"]
    assert deltas([265, 34]) == ["", '\ufffd"', ""]


@given(st.lists(st.integers(0, 268), max_size=12))
def test_all_deltas_together_are_the_text_at_once(tokens: list[int]) -> None:
    assert "".join(deltas(tokens)) == b"".join(TOKENS[token] for token in tokens).decode(errors="replace")


def test_control_tokens_show_only_where_a_format_needs_them() -> None:
    assert deltas([97, EOS, 98, 5_000]) == ["a", "", "b", "", ""]
    detokenizer = Detokenizer(TV, visible=["<|im_end|>"])
    assert [detokenizer.feed(token) for token in (EOS, IM_END)] == ["", "<|im_end|>"]


def test_the_cost_of_a_token_does_not_grow() -> None:
    def seconds(count: int) -> float:
        stream, started = TextStream(TV, stops=["never to be seen"]), time.perf_counter()
        for token in range(count):
            stream.feed(97 + token % 26)
        return time.perf_counter() - started

    seconds(1_000)
    assert min(seconds(8_000) for _ in range(3)) < 8 * min(seconds(4_000) for _ in range(3))


WORDS = Vocabulary([*TOKENS, b"END", b"xENDy"], special=TV.special, eos=[EOS])


def shown(tokens: list[int], stops: list[str], min_tokens: int = 0) -> tuple[list[str], int]:
    """The deltas, and how many tokens the output has."""
    stream, parts = TextStream(WORDS, stops=stops, min_tokens=min_tokens), []
    for token in tokens:
        parts.append(stream.feed(token))
        if stream.stopped:
            break
    count = len(parts)
    return [*filter(None, [*parts, stream.finish()])], count


@pytest.mark.parametrize(
    ("tokens", "stops", "text", "count"),
    [
        ([*b"abcENDxyz"], ["END"], "abc", 6),
        ([*b"abc", 269, 120], ["END"], "abc", 4),
        ([*b"abc", 269, 120], ["ND"], "abcE", 4),
        ([*b"abc", 270, 120], ["END"], "abcx", 4),
        ([97, 263, 98], ["\n\n"], "a", 2),
        ([97, 10, 10, 98], ["\n\n"], "a", 3),
        ([*b"abcd"], ["b", "bc"], "a", 2),
        ([*b"abcd"], ["bc", "abc"], "", 3),  # complete at the same place: the longer one
        ([*b"abcd"], ["abcd", "bc"], "a", 3),  # the one that is complete first
        ([*b"aENENDb"], ["END"], "aEN", 6),
        ([*b"abcEN"], ["END"], "abcEN", 5),  # held back, and flushed
        ([*b"abc"], [], "abc", 3),
    ],
)
def test_text_ends_just_before_the_first_stop_string(
    tokens: list[int], stops: list[str], text: str, count: int
) -> None:
    parts, taken = shown(tokens, stops)
    assert ("".join(parts), taken) == (text, count)


def test_nothing_of_a_stop_string_is_ever_shown() -> None:
    assert shown([*b"abEcENDx"], ["END"])[0] == ["a", "b", "Ec"]


def test_no_stop_string_before_min_tokens() -> None:
    assert shown([*b"bxbyb"], ["b"], min_tokens=0) == ([], 1)
    assert shown([*b"bxbyb"], ["b"], min_tokens=2) == (["b", "x"], 3)
    assert shown([*b"bxbyb"], ["b"], min_tokens=3) == (["b", "x"], 3)  # completed by the third token
    assert shown([*b"ENDx"], ["END"], min_tokens=4) == (["END", "x"], 4)
    assert shown([*b"aaa"], ["aa"], min_tokens=3) == (["a"], 3)


def test_of_two_stop_strings_the_one_that_was_written_is_told() -> None:
    stop = StopText(["cd", "bcd", "b!"])
    assert (stop.found, stop.feed("ab"), stop.feed("cd"), stop.found) == (None, "a", "", "bcd")


def test_a_stop_rule_says_when() -> None:
    rule, other, never = StopRule(TV, ["END"]), StopRule(TV, ["END"]), StopRule(TV, ())
    assert [rule.feed(token) for token in b"aENDx"] == [False, False, False, True, True]
    assert [other.feed(token) for token in b"ND"] == [False, False]
    assert [never.feed(token) for token in b"END"] == [False, False, False]
    shown = StopRule(TV, ["a<|im_end|>"], visible=["<|im_end|>"])  # a marker that is a control token, and is text
    assert [shown.feed(token) for token in (97, IM_END)] == [False, True]


@given(st.text("abE", max_size=12), st.lists(st.text("abE", min_size=1, max_size=4), max_size=3), st.integers(0, 2**32))
def test_the_cut_does_not_depend_on_the_split(text: str, stops: list[str], seed: int) -> None:
    dice, whole = random.Random(seed), StopText(stops)
    at_once = whole.feed(text) + whole.finish()
    pieces, stop, place = "", StopText(stops), 0
    while place < len(text) and not stop.found:
        size = dice.randint(1, 4)
        pieces += stop.feed(text[place : place + size])
        place += size
    assert (pieces + stop.finish(), stop.found) == (at_once, whole.found)
    assert not any(word in at_once for word in stops)
