"""Which segment each character of an answer belongs to, in any split into tokens."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentspec.segmenter import Segmenter
from agentspec.segments import CallMarks, Segment

HERMES = Segmenter(calls=CallMarks(opens=("<tool_call>",), closes=("</tool_call>",)))
XML = Segmenter(
    calls=CallMarks(
        opens=("<tool_call>",),
        closes=("</tool_call>",),
        name_after=("<function=",),
        raw_value=("<parameter=", ">\n", "\n</parameter>"),
    )
)
PYTHONIC = Segmenter(calls=CallMarks(opens=("[",), closes=("]",), python=True))
NAMED = Segmenter(calls=CallMarks(opens=("[TOOL_CALLS]",), name_after=("[TOOL_CALLS]",)))
BARE = Segmenter(calls=CallMarks(opens=('{"name": "',)))

SHORT = {
    Segment.PROSE: "P",
    Segment.REASONING: "R",
    Segment.CALL_FRAME: "F",
    Segment.TOOL_NAME: "T",
    Segment.JSON_KEY: "K",
    Segment.STRING_VALUE: "S",
    Segment.NUMBER: "N",
    Segment.CODE: "C",
    Segment.END: "E",
}


def outline(rules: Segmenter, text: str) -> str:
    """Runs of characters, each behind the letter of the segment that was expected there."""
    place, runs = rules.start(), []
    for character in text:
        runs.append((SHORT[rules.segment(place)], character))
        place = rules.advance(place, character.encode())
    parts = [f"{letter}|{''.join(each for _, each in run)}|" for letter, run in groupby(runs, key=lambda run: run[0])]
    return "".join(parts) + SHORT[rules.segment(place)]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (
            HERMES,
            'P|Ok.\n<tool_call>|F|\n{"name": "|T|edit"|F|, "arguments": {|K|"path": |N|"|S|a.py"|K|, "n": |N|-1,|K|'
            ' "code": |N|"|C|x = \\"{\\""|K|}|F|}\n</tool_call>|E|\n|E',
        ),
        (HERMES, 'P|<think>|R|so {\n</think>|P|\n{|K|"a": |N|[{|K|"b": |N|1}|K|, |N|null]|K|}|E'),
        (HERMES, "P|a ``` b\n```|C|py\nx = '```'\n```|P| and `c`|P"),
        (HERMES, 'P|\n```|C|json\n|K|{"a": |N|"|S|b"|K|}\n`|C|``|P|.|P'),
        (HERMES, "P|{|K|n|P|ame} is|P"),
        (Segmenter(document=True), 'K|{"a": |N|"|S|b"|K|}|E'),
        (XML, "P|<tool_call>|F|\n<function=|T|f>|F|\n<parameter=|K|x>\n|S|{1}\n</parameter>|F|\n</tool_call>|E"),
        (
            replace(HERMES, called=True),
            'F|<think>|R|a {\n</think>|F|\n\n<tool_call>{"name": "|T|f"|F|}</tool_call>|E|\n<|F|tool_call>{|F',
        ),
        (replace(PYTHONIC, called=True), "F|[|T|f(|K|)|F|]|E"),
        (replace(BARE, called=True), 'F|{"name": "|T|f"|F|, "parameters": {|K|"a": |N|1}|F|}|E'),
        (PYTHONIC, 'P|[|T|f(|K|city=|N|"|S|a]b"|K|, l=|N|[1]|K|)|F|,|T| g(|K|)|F|]|E'),
        (NAMED, 'P|[|N|T|P|OOL_CALLS]|T|f[|F|ARGS]{|K|"name": |N|"|S|x"|K|}|E'),
        (BARE, 'P|{|F|"name": "|T|f"|F|, "parameters": {|K|"a": |N|1}|F|}|E'),
    ],
)
def test_every_character_has_its_segment(rules, expected):
    found = outline(rules, "".join(expected[:-1].split("|")[1::2]))
    assert found == expected


@pytest.mark.parametrize(
    ("rules", "head", "piece"),
    [
        (Segmenter(document=True), "", "["),
        (PYTHONIC, "[f(a=", "("),
        (HERMES, "```", "x"),
        (XML, "<tool_call>\n<function=f>\n<parameter=", "x"),
    ],
)
def test_what_has_no_end_takes_no_more_to_remember_nor_to_read(rules, head, piece):
    place = rules.advance(rules.start(), f"{head}{200 * piece}".encode())
    assert rules.advance(place, piece.encode()) == place


TEXTS = [
    '<think>x</think>Ok\n<tool_call>\n{"name": "e", "arguments": {"diff": "a\\n\\"b"}}\n</tool_call>\n',
    '```json\n[{"naïve": 1.5e3}]\n```\n😀 `x`',
    '<tool_call>\n{"a": "<parameter=b>\n</tool_call>", "c": "<function="}',
]


@given(st.sampled_from(TEXTS), st.lists(st.integers(0, 80)), st.sampled_from([HERMES, XML, NAMED]))
def test_the_place_is_the_same_however_the_text_was_cut(text, cuts, rules):
    data, place = text.encode(), rules.start()
    edges = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
    for start, end in pairwise(edges):
        place = rules.advance(place, data[start:end])
    assert place == rules.advance(rules.start(), data)
