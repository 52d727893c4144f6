"""An answer is taken apart the same way however it was cut, and no call that was cut off looks whole."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable

import pytest
from format_doubles import cuts
from format_doubles import parse as parse_format

from agentspec.chat.base import BrokenCallDelta, Message, MessageBuilder, TextDelta, ToolCall, ToolCallDelta
from agentspec.chat.formats.hermes import HERMES
from agentspec.chat.parser import AnswerParser, TextParser

TWO_CALLS = (
    'Sure.<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    '\n<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
)
NO_CALL = "a < b and <tool is not a tag <tool_cal"
TRICKY = (
    "x\n\n<tool_call>\n"
    + r'{"name": "w", "arguments": {"a": "}</tool_call>\" {\\", "b": [{"c": "😀"}, 1.5]}}'
    + "\n</tool_call>\n\nafter\n"
)
ODD = (
    '<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call><tool_call>oops</tool_call> '
    '<tool_call>\n{"name": "g", "arguments": "{\\"b\\": 2}"}\n</tool_call>'
    '<tool_call>{"name": "h", "arguments": {"a": nope}}</tool_call>'
)
WHOLE = {
    TWO_CALLS: Message(
        "Sure.", (ToolCall("call_0", "get_weather", '{"city": "Oslo"}'), ToolCall("call_1", "get_time", "{}"))
    ),
    NO_CALL: Message(NO_CALL),
    TRICKY: Message("x\nafter\n", (ToolCall("call_0", "w", r'{"a": "}</tool_call>\" {\\", "b": [{"c": "😀"}, 1.5]}'),)),
    ODD: Message(
        "",
        (ToolCall("call_0", "f", '{"a": 1}'), ToolCall("call_1", "g", '{"b": 2}')),
        (ToolCall("call_2", "h", '{"a": nope}', complete=False), ToolCall("", "", "oops", complete=False)),
    ),
}


def parse(parts: Iterable[str]) -> Message:
    number = itertools.count()
    parser, builder = AnswerParser(HERMES, (), new_id=lambda: f"call_{next(number)}"), MessageBuilder()
    for part in parts:
        deltas = parser.feed(part)
        for delta in deltas:
            assert not isinstance(delta, TextDelta) or "<tool_c" not in delta.text
        builder.add(deltas)
    builder.add(parser.finish())
    return builder.message()


@pytest.mark.parametrize("text", WHOLE, ids=["two calls", "no call", "tricky", "odd"])
def test_the_message_does_not_depend_on_the_cuts(text: str) -> None:
    dice = random.Random(0)
    assert parse([text]) == WHOLE[text]
    assert parse(text) == WHOLE[text]
    for cut in range(len(text)):
        assert parse([text[:cut], text[cut:]]) == WHOLE[text]
    for _ in range(500):
        cuts = sorted(dice.sample(range(len(text)), dice.randint(1, 12)))
        assert parse(text[start:end] for start, end in itertools.pairwise([0, *cuts, len(text)])) == WHOLE[text]


def test_deltas_of_a_call_are_its_head_once_and_then_pieces_of_arguments() -> None:
    parser = AnswerParser(HERMES, (), new_id=lambda: "call_x")
    head = '<tool_call>\n{"name": "f", "arguments": '
    assert parser.feed(head) == []
    assert parser.feed('{"a') == [ToolCallDelta(0, "call_x", "f"), ToolCallDelta(0, arguments='{"a')]
    assert parser.feed('": 1}') == [ToolCallDelta(0, arguments='": 1}')]
    assert parser.feed("}\n</tool_call>") == parser.finish() == []


def test_text_is_held_back_no_longer_than_the_marker() -> None:
    parser, shown = AnswerParser(HERMES, ()), 0
    for given, character in enumerate(TRICKY.split("<tool_call>")[0] + NO_CALL, start=1):
        shown += sum(len(delta.text) for delta in parser.feed(character) if isinstance(delta, TextDelta))
        assert given - shown <= len("\n<tool_call>") - 1


def test_a_call_that_was_cut_off_is_never_complete() -> None:
    call = '<tool_call>\n{"name": "w", "arguments": {"city": "Oslo"}}\n</tool_call>'
    whole = call.index("}}") + 2
    for length in range(len(call)):
        message = parse([call[:length]])
        assert len(message.tool_calls) == (length >= whole), call[:length]
        assert len(message.broken_calls) == (len("<tool_call>") <= length < whole), call[:length]
    cut = parse([call[: call.index("lo")]])
    assert cut.broken_calls == (ToolCall("call_0", "w", '{"city": "Os', complete=False),)
    assert cut.wire["invalid_tool_calls"][0]["function"] == {"name": "w", "arguments": '{"city": "Os'}


def test_a_body_that_is_no_call_is_reported() -> None:
    parser = AnswerParser(HERMES, ())
    assert parser.feed("<tool_call>\nsay hi\n</tool_call>") == [BrokenCallDelta(None, "\nsay hi\n")]


def test_the_wire_form_is_openais() -> None:
    assert parse([TWO_CALLS]).wire == {
        "role": "assistant",
        "content": "Sure.",
        "tool_calls": [
            {"id": "call_0", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}},
            {"id": "call_1", "type": "function", "function": {"name": "get_time", "arguments": "{}"}},
        ],
    }
    assert parse(["hi"]).wire == {"role": "assistant", "content": "hi"}
    assert parse([""]).wire == {"role": "assistant", "content": ""}
    assert parse([TWO_CALLS[5:]]).wire["content"] is None
    assert len({json.dumps(AnswerParser(HERMES, ()).feed(TWO_CALLS)[1].id) for _ in range(9)}) == 9  # type: ignore[union-attr]


def test_without_tools_all_is_text() -> None:
    parser = TextParser()
    assert [*parser.feed(TWO_CALLS), *parser.finish()] == [TextDelta(TWO_CALLS)]


OSLO = ToolCall("call_0", "get_weather", '{"city": "Oslo"}')
UNTAGGED = {
    '```json\n{\n  "name": "get_weather",\n  "arguments": {"city": "Oslo"}\n}\n```': Message("", (OSLO,)),
    '{"name": "get_weather", "arguments": {"city": "Oslo"}}\nSo.': Message("So.", (OSLO,)),
    '{"name":"get_weather","parameters": {"city": "Oslo"}}': Message("", (OSLO,)),
    '```\n{"name": "get_weather", "arguments": {"city": ': Message(
        "", (), (ToolCall("call_0", "get_weather", '{"city": ', complete=False),)
    ),
}
TEXTS = [
    '{"name": "get_stars", "arguments": {}}',
    '{"name": {"first": "Ann"}}',
    '```json\n{"name": "get_weather", "city": "Oslo"}\n```',
    "```python\n{}\n```",
    'So: {"name": "get_weather", "arguments": {}}',
    '{"name": "get_wea',
]


@pytest.mark.parametrize("text", [*UNTAGGED, *TEXTS])
def test_a_call_without_tags_is_one_where_an_answer_begins_with_it_and_all_else_is_text(text: str) -> None:
    expected = UNTAGGED.get(text, Message(text))
    for parts in cuts(text, random_ones=10):
        assert parse_format(HERMES, parts) == expected
