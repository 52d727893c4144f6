"""Tool calls: free text costs nothing, and a call is valid from the marker on, however the marker was written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from engine_doubles import ByteTokenizer
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_vocabulary import EOS, IM_END, TOKENS, TV, ids, walk

from agentspec.chat.chat import Chat
from agentspec.chat.formats.hermes import OPEN
from agentspec.errors import ConfigError, GrammarError
from agentspec.grammar.base import FREE, Guide
from agentspec.grammar.masks import allows
from agentspec.grammar.tools import Tool, ToolChoice, read_tool, read_tools
from agentspec.grammar.vocabulary import Vocabulary

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NOW = {"type": "function", "function": {"name": "now"}}
PING = {"type": "function", "function": {"name": "ping", "parameters": {}}}
WEATHER = {"type": "function", "function": {"name": "w", "parameters": CITY}}
TOOLS = read_tools([NOW, PING, WEATHER])

OSLO = '<tool_call>\n{"name": "w", "arguments": {"city": "Oslo"}}\n</tool_call>'
CLOCK = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'


def tool_guide(
    vocabulary: Vocabulary, tools: Sequence[Tool], choice: ToolChoice = "auto", *, parallel: bool = True
) -> Guide:
    return Chat(ByteTokenizer(), vocabulary, tool_format="hermes").guide(tools, choice, parallel=parallel)


def ends(guide: Guide, text: str) -> bool:
    """Whether the output may be just this text."""
    cursor = walk(guide, [*text.encode(), EOS])
    return cursor is not None


@pytest.mark.parametrize(
    ("choice", "text", "legal"),
    [
        ("auto", "Sure.", True),
        ("auto", f"Sure. {OSLO}\n{CLOCK}", True),
        ("auto", f"Sure. {OSLO} and more", False),
        ("auto", "<tool_call>", False),
        ("auto", "<tool_cal", True),
        ("auto", "<<tool_call> x", False),
        ("auto", OSLO.replace("city", "town"), False),
        ("auto", OSLO.replace('"w"', '"now"'), False),
        ("auto", OSLO.replace('"Oslo"', '"Oslo", "more": 1'), False),
        ("required", "Sure.", False),
        ("required", "", False),
        ("required", f"{OSLO}\n{CLOCK}", True),
        ("w", OSLO, True),
        ("w", f"{OSLO}\n{OSLO}", False),
        ("w", CLOCK, False),
        ({"type": "function", "function": {"name": "now"}}, CLOCK, True),
        ("none", "Sure. <tool_cal", True),
        ("none", "<tool_call>", False),
    ],
)
def test_what_a_choice_of_tools_allows(choice: object, text: str, legal: bool) -> None:
    assert ends(tool_guide(TV, TOOLS, choice), text) == legal  # type: ignore[arg-type]


def test_one_call_where_calls_may_not_be_parallel() -> None:
    for choice in ("auto", "required"):
        assert ends(tool_guide(TV, TOOLS, choice, parallel=False), OSLO)
        assert not ends(tool_guide(TV, TOOLS, choice, parallel=False), f"{OSLO}\n{CLOCK}")


@pytest.mark.parametrize("name", ["now", "ping"])
def test_a_tool_without_parameters_is_called_with_an_empty_object(name: str) -> None:
    guide, tokens = tool_guide(TV, TOOLS, name), []
    cursor = guide.start()
    while not cursor.accepting:
        tokens += [cursor.forced(1)[0]]
        cursor = cursor.advance(tokens[-1])  # type: ignore[assignment]
    assert b"".join(TOKENS[token] for token in tokens) == CLOCK.replace("now", name).encode()
    assert ids(cursor.mask()) == [EOS, IM_END]


def test_free_text_has_no_mask_until_the_marker_is_out() -> None:
    cursor, free = tool_guide(TV, TOOLS).start(), []
    for token in f"a < b{OSLO}".encode():
        free.append(cursor.mask() is None)
        cursor = cursor.advance(token)  # type: ignore[assignment]
    assert free == [True] * 16 + [False] * (len(OSLO) - 11)
    assert cursor.accepting


def marked(*extra: bytes, special: dict[int, str] | None = None) -> Vocabulary:
    """The toy vocabulary with more tokens: the first extra one has id 269."""
    return Vocabulary([*TOKENS, *extra], special=TV.special | (special or {}), eos=[EOS])


def test_a_token_that_runs_over_the_markers_end_is_held_to_the_call() -> None:
    tokens = marked(b">\n", b'>\n{"na', b"> ", b"l>x", b">\xc3")
    guide = tool_guide(tokens, TOOLS)
    cursor = walk(guide, b"<tool_call")
    assert cursor is not None
    mask = cursor.mask()
    right = (62, 269, 270, 272, 65)  # 272 does not end the marker here
    assert [allows(mask, token) for token in (*right, 271, 273)] == [True] * 5 + [False] * 2
    assert cursor.advance(271) is None
    for token, said in ((269, b"\n"), (270, b'\n{"na')):
        inside = cursor.advance(token)
        assert inside is not None
        rest = OSLO[len(OPEN) :].encode().removeprefix(said)
        assert walk(_From(inside), [*rest, EOS]) is not None
    assert walk(guide, [*b"x <tool_cal", 272]) is None


class _From:
    def __init__(self, cursor: object) -> None:
        self.start = lambda: cursor


@pytest.mark.parametrize("special", [{}, {269: OPEN}])
def test_a_marker_may_be_one_token_of_text_or_a_control_token(special: dict) -> None:
    tokens = marked(OPEN.encode(), special=special)
    for choice in ("auto", "required"):
        after = walk(tool_guide(tokens, TOOLS, choice), [269, *OSLO[len(OPEN) :].encode(), 10, 269])
        assert after is not None
        assert not after.accepting
        assert ids(after.mask()) == [10]
    assert walk(tool_guide(tokens, TOOLS, "none"), [269]) is None
    assert not allows(tool_guide(tokens, TOOLS, "none").start().mask(), 269)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([b"<", b"<tool", b"_call", b">", b"<tool_call", b"t", b"l>"]), max_size=8))
def test_the_marker_is_seen_in_any_split(parts: list[bytes]) -> None:
    tokens = marked(b"<tool", b"_call", b"<tool_call", b"l>")
    cursor = walk(tool_guide(tokens, TOOLS), [tokens.tokens.index(part) for part in parts])
    text, closed = b"".join(parts), f"{OPEN}".encode()
    if closed not in text:
        assert cursor is not None
        assert cursor.mask() is None
    elif text.endswith(closed) and text.count(closed) == 1:
        assert cursor is not None
        assert ids(cursor.mask()) == [10]
    else:
        assert cursor is None


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ([NOW, NOW], "tools[1]: the name 'now' is taken"),
        ([{"type": "function", "function": {}}], "tools[0]: a tool's name"),
        ([{"type": "function", "function": {"name": 'a"b'}}], "tools[0]: a tool's name"),
        ([{"type": "retrieval"}], "tools[0]: a tool must be"),
        ([{"type": "function", "function": {"name": "a", "parameters": {"type": "string"}}}], "an object"),
    ],
)
def test_a_malformed_tool_is_named(tools: list, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_tools(tools)
    assert words in str(caught.value)


def test_a_choice_must_be_among_the_tools() -> None:
    with pytest.raises(ConfigError, match=r"one of the tools \(now, ping, w\), not 'nope'"):
        tool_guide(TV, TOOLS, "nope")
    with pytest.raises(ConfigError, match="at least one tool"):
        tool_guide(TV, (), "required")
    assert tool_guide(TV, ()) is FREE


def test_a_tool_that_cannot_be_enforced_is_named_with_the_keyword() -> None:
    bad = {**CITY, "properties": {"city": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}}}
    tools = read_tools([NOW, {"type": "function", "function": {"name": "bad", "parameters": bad}}])
    with pytest.raises(
        GrammarError, match=r"^tool 'bad': its parameters can't be enforced: 'uniqueItems' at \$\.properties\.city"
    ):
        tool_guide(TV, tools)


@pytest.mark.real_model
@pytest.mark.parametrize(
    ("model", "least_forced"), [("qwen2.5-coder-0.5b", 21), ("smollm2-135m", 34)], ids=["qwen", "smollm2"]
)
def test_a_required_call_is_mostly_forced(
    real_model: Callable[[str], Path], model: str, least_forced: int, record_property: Callable[[str, object], None]
) -> None:
    from transformers import AutoTokenizer

    tokens = Vocabulary.of(AutoTokenizer.from_pretrained(real_model(model)))
    properties = {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}, "days": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    tools = read_tools([{"type": "function", "function": {"name": "get_weather", "parameters": schema}}, NOW])
    call = '{"name": "get_weather", "arguments": {"city": "Oslo", "unit": "celsius", "days": 3}}'
    output = tokens.encode(f"{OPEN}\n{call}\n</tool_call>")
    cursor, place, forced = tool_guide(tokens, tools, "required").start(), 0, 0
    while place < len(output):
        run = cursor.forced(99)
        assert list(run) == output[place : place + len(run)]  # the tokenizer's own split, in context
        for token in run or output[place : place + 1]:
            cursor = cursor.advance(token)  # type: ignore[assignment]
            place += 1
        forced += len(run)
    record_property("forced", f"{forced} of {len(output)}")
    assert forced >= least_forced
    assert cursor.accepting


@pytest.mark.parametrize("parameters", [[], False, 0, ""])
def test_parameters_that_are_no_schema_are_refused_even_where_they_count_as_nothing(parameters) -> None:
    with pytest.raises(ConfigError, match="parameters of 'a' must be a JSON schema"):
        read_tool({"type": "function", "function": {"name": "a", "parameters": parameters}})
