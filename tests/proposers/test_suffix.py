from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_vocabulary import EOS, TV

from agentspec.config import SamplingParams
from agentspec.draft import Draft
from agentspec.grammar.base import FREE, Cursor
from agentspec.grammar.llg import regex_guide
from agentspec.proposers.answers import AnswerStore
from agentspec.proposers.base import Context
from agentspec.proposers.index import LEVELS, LONGEST, SuffixIndex
from agentspec.proposers.respelled import escaped, respelled, unescaped
from agentspec.proposers.suffix import SuffixProposer
from agentspec.segments import Segment


@dataclass(frozen=True)
class Inside:
    """Free text that is known to stand in one segment."""

    segment: Segment
    accepting: bool = True

    def advance(self, token: int) -> Cursor | None:
        return self

    def mask(self) -> None:
        return None

    def forced(self, limit: int) -> tuple[int, ...]:
        return ()


def ask(
    proposer: SuffixProposer,
    tokens: Sequence[int],
    *,
    budget: int = 8,
    request_id: int = 0,
    cursor: Cursor = FREE,
    prompt_length: int = 0,
    caller: str = "",
    prediction: Sequence[int] = (),
    guessed: int = 0,
) -> Draft:
    context = Context(
        request_id,
        list(tokens),
        cursor,
        SamplingParams(),
        seed=0,
        budget=budget,
        prompt_length=prompt_length,
        caller=caller,
        prediction=tuple(prediction),
        guessed=guessed,
    )
    return proposer.propose([context])[0]


def first_branch(draft: Draft) -> tuple[int, ...]:
    path: list[int] = []
    for node, parent in enumerate(draft.parents):
        if parent == (path[-1] if path else -1):
            path.append(node)
    return tuple(draft.tokens[node] for node in path)


def by_brute_force(tokens: Sequence[int], tail: Sequence[int], most: int) -> dict[int, int]:
    lengths: dict[int, int] = {}
    for place in range(1, len(tokens) + 1):
        same = 0
        while same < min(place, len(tail), LONGEST) and tokens[place - same - 1] == tail[len(tail) - same - 1]:
            same += 1
        lengths[place] = same
    found: dict[int, int] = {}
    for level in LEVELS:
        latest = [place for place, same in lengths.items() if same >= level][-most:]
        found |= {place: lengths[place] for place in latest}
    return found


@given(
    st.lists(st.lists(st.integers(0, 2), max_size=12), max_size=5),
    st.lists(st.integers(0, 2), max_size=40),
    st.integers(1, 3),
)
def test_law_9_the_suffix_index_agrees_with_brute_force(parts: list[list[int]], tail: list[int], most: int) -> None:
    index = SuffixIndex()
    for part in parts:
        index.extend(part)
    matches = index.matches(tail, most)
    assert {place: length for length, place in matches} == by_brute_force(index.tokens, tail, most)


@given(st.lists(st.integers(0, 2), max_size=40), st.lists(st.integers(0, 2), max_size=40))
def test_an_index_that_is_cut_and_grown_answers_as_a_new_one(before: list[int], after: list[int]) -> None:
    index = SuffixIndex(before)
    index.follow(after)
    assert index.tokens == after
    for size in range(len(after)):
        assert index.matches(after[:size], 3) == SuffixIndex(after).matches(after[:size], 3)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([1, 2, 3, 4, 1, 2], (3, 4, 1)),
        ([1, 2, 3, 9, 1, 2, 5, 9, 1, 2], (5, 9, 1)),  # of two matches alike, the latest
        ([7, 1, 2, 3, 9, 8, 1, 2, 5, 9, 7, 1, 2], (3, 9, 8)),  # but a longer match wins over a later one
        ([4, 4, 4], (4, 4, 4)),  # a repetition goes on past what was written
        ([1], ()),
    ],
)
def test_the_likeliest_branch_follows_the_longest_latest_match(tokens: list[int], expected: tuple[int, ...]) -> None:
    assert first_branch(ask(SuffixProposer(TV), tokens, budget=12))[:3] == expected


def test_where_two_continuations_are_likely_both_are_branches() -> None:
    draft = ask(SuffixProposer(TV), [1, 2, 3, 4, 9, 1, 2, 5, 6, 8, 1, 2], budget=4)
    assert draft.tokens == (5, 3, 6, 4)
    assert draft.parents == (-1, -1, 0, 1)
    assert draft.scores[0] > draft.scores[1]


def test_votes_count_five_places_over_a_later_one() -> None:
    draft = ask(SuffixProposer(TV), [*[1, 2, 3] * 5, 1, 2, 4, 1, 2], budget=4)
    assert draft.tokens[0] == 3


def test_a_continuation_that_the_grammar_forbids_makes_room_for_the_next() -> None:
    cursor = regex_guide(TV, "(cat|dog)+").start().advance(ord("c"))
    assert cursor is not None
    draft = ask(SuffixProposer(TV), b"cats cow c", cursor=cursor)  # "o" followed "c" last, but may not here
    assert bytes(first_branch(draft)) == b"at"


def test_a_guess_is_continued_and_not_remembered() -> None:
    proposer = SuffixProposer(TV)
    assert ask(proposer, [1, 2, 3, 4, 5, 1, 2], guessed=1, budget=2).tokens == (3, 4)
    ask(proposer, [1, 2, 3, 4, 5, 1, 7, 1], guessed=2)
    assert ask(proposer, [1, 2, 3, 4, 5, 1]).tokens == (2, 3, 4, 5, 1, 2, 3, 4)


def test_fifty_thousand_equal_tokens_cost_no_more_than_others() -> None:
    index = SuffixIndex([5] * 50_000)
    assert len(index.matches([5] * 50_000, 8)) == 8
    assert len(ask(SuffixProposer(TV), [5] * 50_000, budget=16)) == 16


FILE = b'def f():\n    print("hi")\n    return f\n'
WRITTEN = rb"def f():\n    print(\"hi\")\n    return f\n"


def test_the_two_spellings_of_a_text() -> None:
    assert escaped(FILE.decode()) == WRITTEN.decode()
    assert unescaped(WRITTEN.decode()) == FILE.decode()
    assert unescaped(r"caf\u00e9 \ud83d\ude00 \q \ud800") == "café 😀 \\q ?"  # what is no escape stays
    assert bytes(respelled(TV, [*b"a\nb", EOS, *b"c"], escaped)[:4]) == rb"a\nb"


@pytest.mark.parametrize(
    ("read", "written", "goes_on"),
    [(FILE, rb"def f():\n    p", rb"rint(\"hi\")\n"), (WRITTEN, b"def f():\n    p", b'rint("hi")\n')],
)
def test_text_is_found_in_its_other_spelling(read: bytes, written: bytes, goes_on: bytes) -> None:
    proposer, inside = SuffixProposer(TV), Inside(Segment.CODE)
    prompt = read + b"\nWrite it: "
    ask(proposer, prompt, cursor=inside, prompt_length=len(prompt))
    draft = ask(proposer, prompt + written, cursor=inside, prompt_length=len(prompt), budget=40)
    text = b"".join(TV.tokens[token] for token in first_branch(draft))
    assert text.startswith(goes_on)
    assert draft.sources[0] == "escaped"


def test_earlier_answers_are_used_for_the_same_caller_only() -> None:
    proposer = SuffixProposer(TV)
    ask(proposer, [1, 2], caller="ann")
    proposer.finish(0, [7, 8, 9, 10])
    mine = ask(proposer, [3, 7, 8], request_id=1, caller="ann")
    assert first_branch(mine) == (9, 10)
    assert set(mine.sources) == {"answers"}
    assert not len(ask(proposer, [3, 7, 8], request_id=2, caller="bob"))


def test_callers_that_share_and_answers_that_are_too_old() -> None:
    store = AnswerStore(capacity=40, shared=True)
    for answer in range(20):
        store.add(f"caller {answer}", [answer] * 9)
    assert len(store) <= 40
    assert store.indexes("anyone")[0].tokens[-2] == 19
    assert all(0 not in index.tokens for index in store.indexes("anyone"))


def test_of_this_request_and_earlier_answers_alike_this_request_is_credited() -> None:
    proposer = SuffixProposer(TV)
    ask(proposer, [1])
    proposer.finish(0, [7, 8, 9])
    assert ask(proposer, [7, 8, 9, 7, 8], request_id=1).sources[0] == "suffix"


def test_a_prediction_is_followed_from_its_start_and_found_again_after_a_change() -> None:
    proposer = SuffixProposer(TV)
    prediction = b"alpha beta gamma alpha beta delta"
    prompt = [300, 301]
    start = ask(proposer, prompt, prompt_length=2, prediction=prediction, budget=5)
    assert bytes(first_branch(start)) == b"alpha"
    assert set(start.sources) == {"prediction"}
    ask(proposer, [*prompt, *b"alpha beta gamma "], prompt_length=2, prediction=prediction)
    # "ta" stands twice in the prediction: the place behind the one that was reached counts, though new text came.
    changed = ask(proposer, [*prompt, *b"alpha beta gamma XYZ ta"], prompt_length=2, prediction=prediction)
    assert bytes(first_branch(changed))[:3] == b" de"


def test_a_prediction_is_followed_escaped_too() -> None:
    proposer, prompt = SuffixProposer(TV), b"write: "
    written = prompt + rb'{"text": "x = 1\ny'
    draft = ask(proposer, written, prompt_length=len(prompt), prediction=b'x = 1\ny = "2"\n', budget=9)
    assert b"".join(TV.tokens[token] for token in first_branch(draft)).startswith(rb" = \"2\"")


def test_the_next_turn_starts_from_the_index_of_the_last() -> None:
    proposer = SuffixProposer(TV)
    ask(proposer, [*range(50), 1])
    proposer.finish(0, [1])
    assert ask(proposer, [*range(50), 60, 48, 49], request_id=1, budget=1).tokens == (60,)
