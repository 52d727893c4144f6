"""What stands between two values of free JSON is drafted as this conversation wrote it before."""

from __future__ import annotations

import pytest
from test_pool import branches
from toy_vocabulary import EOS, TV

from agentspec.config import SamplingParams
from agentspec.draft import Draft
from agentspec.grammar.base import FREE, Guide
from agentspec.grammar.schema import schema_guide
from agentspec.grammar.track import TrackedGuide
from agentspec.proposers.base import Context
from agentspec.proposers.shape import ShapeProposer
from agentspec.segmenter import Segmenter

LIST = b'[ {"id" : 7,\n\t"name":  "Ann"} ,{"id" : 8'  # white space that nobody would guess


def propose(answer: bytes, *, prompt: bytes = b"", guessed: int = 0, guide: Guide = FREE) -> Draft:
    cursor = TrackedGuide(guide, TV, Segmenter()).start()
    for byte in answer:
        following = cursor.advance(byte)
        assert following is not None
        cursor = following
    tokens = [*prompt, EOS, *answer]
    context = Context(
        0, tokens, cursor, SamplingParams(), seed=0, budget=32, prompt_length=len(prompt) + 1, guessed=guessed
    )
    (draft,) = ShapeProposer(TV).propose([context])
    return draft


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (LIST, b',\n\t"name":  "'),
        (LIST + b',\n\t"na', b'me":  "'),
        (LIST + b',\n\t"name":  "Bob', b'"} ,{"id" : '),
        (LIST + b',\n\t"name":  "Bob"}', b' ,{"id" : '),
    ],
)
def test_the_frame_behind_a_value_comes_again_with_its_own_white_space(answer: bytes, expected: bytes) -> None:
    assert branches(propose(answer)) == [expected]


def test_a_guess_is_drafted_on_and_never_taken_for_known() -> None:
    assert propose(LIST + b',\n\t"name":  "B"', guessed=5) == propose(LIST + b',\n\t"name":  "B"')
    assert branches(propose(b'[{"a": 1, "b": 2}, {"a": 3', guessed=18)) == []  # all that is known is `[{"a": 1`


def test_this_answer_is_preferred_to_the_prompt_and_the_prompt_to_nothing() -> None:
    prompt = b'Like this: {"a": 1, "b": 2}'
    assert branches(propose(b'{"a": 5', prompt=prompt)) == [b', "b": ']
    assert branches(propose(b'[{"a":1,"b":2},{"a":5', prompt=prompt)) == [b',"b":']


def test_how_long_the_values_were_says_where_one_may_end() -> None:
    seen = b'[{"k": "ab"}, {"k": "cd"}, {"k": "ef"}, {"k": "'
    assert propose(seen + b"gh").scores[0] > 0.5
    assert not propose(seen + b"g")


def test_several_frames_part_where_they_differ() -> None:
    draft = propose(b'[{"a":1,"b":1},{"a":1,"b":1},{"a":1,"c":1},{"a":1')
    assert branches(draft) == [b',"b":', b',"c":']
    assert draft.scores[draft.tokens.index(ord("b"))] > draft.scores[draft.tokens.index(ord("c"))]


@pytest.mark.parametrize("answer", [LIST + b',\n\t"size": 9', b'{"new": 7', b'{"id": "7\\', b"Not JSON, but prose"])
def test_where_nothing_is_known_nothing_is_drafted(answer: bytes) -> None:
    assert not propose(answer, prompt=b'{"id": "7", "name": "Ann"}')


def test_what_a_mask_holds_is_left_to_the_grammar() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    assert propose(b'{"a": 5', prompt=b'{"a": 1, "b": 2}')
    assert not propose(b'{"a": 5', prompt=b'{"a": 1, "b": 2}', guide=schema_guide(TV, schema))
