"""The public engine on a scripted target: text in, text out."""

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from engine_doubles import byte_asker
from fault_cases import NOTHING_TO_SAY, SHORT_TEXT, as_tool
from outlines.types import Regex
from toy_vocabulary import TV

from agentspec import Engine, SamplingParams
from agentspec.chat.base import MessageBuilder, TextDelta
from agentspec.config import EngineConfig
from agentspec.engine.core import EngineCore
from agentspec.errors import ConfigError, EngineError, GrammarError, PromptError, PromptTooLongError
from agentspec.grammar.tools import read_tools
from agentspec.proposers.grammar import GrammarProposer
from agentspec.proposers.pool import ProposerPool
from agentspec.proposers.suffix import SuffixProposer
from agentspec.testing import FixedController, ScriptedTarget

END = 256
HALF = {"function": {"name": "f", "arguments": '{"a": "\\ud83d"}'}}
CALLED = [{"role": "assistant", "tool_calls": [HALF]}, {"role": "user", "content": "Go on."}]


def after(prompt_length: int, output: Sequence[int], context_length: int = 4096) -> ScriptedTarget:
    """Writes `output` after a prompt of this length, then the end token."""

    def logits(tokens: Sequence[int]) -> dict[int, float]:
        place = len(tokens) - prompt_length
        return {output[place] if 0 <= place < len(output) else END: 10.0}

    return ScriptedTarget(logits, vocab_size=320, eos=frozenset({END, 257}), context_length=context_length)


def engine_for(target: ScriptedTarget) -> Engine:
    pool = ProposerPool([GrammarProposer(TV), SuffixProposer(TV)])
    core = EngineCore(target, pool, controller=FixedController(8), config=EngineConfig())
    return Engine(core, byte_asker())


WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CALL = b'<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
ASK = "What?"


def writes(text: bytes, **options: Any) -> Engine:
    """An engine that answers `ASK`, asked with these options, with `text`."""
    prompt = byte_asker().tokens(ASK, read_tools(options.get("tools", ())), options.get("tool_choice", "auto"))
    return engine_for(after(len(prompt), list(text)))


def test_an_answer_has_text_message_reason_and_counts() -> None:
    with writes(b"Blue.") as engine:
        result = engine.generate(ASK)
    assert (result.text, result.finish_reason) == ("Blue.", "stop")
    assert result.tokens == (*b"Blue.", END)
    assert result.message == {"role": "assistant", "content": "Blue."}
    assert (result.usage.prompt_tokens, result.usage.completion_tokens, result.usage.total_tokens) == (5, 6, 11)
    assert (result.stats.tokens, result.stats.forwards) == (6, 6)


@pytest.mark.parametrize("choice", ["auto", "required", "weather"])
@pytest.mark.parametrize("speculate", [True, False])
def test_a_tool_call_comes_out_as_a_message_ready_for_the_next_turn(choice: str, speculate: bool) -> None:
    options: dict[str, Any] = {"tools": [WEATHER], "tool_choice": choice}
    with writes(CALL, **options) as engine:
        result = engine.generate(ASK, speculate=speculate, **options)
    (call,) = result.message["tool_calls"]
    assert call["function"] == {"name": "weather", "arguments": '{"city": "Oslo"}'}
    assert (result.finish_reason, result.text) == ("tool_calls", CALL.decode())
    assert result.message["content"] is None
    if speculate:
        assert result.stats.accepted["grammar"] > 30


@pytest.mark.parametrize("limit", range(1, len(CALL), 7))
def test_p19_a_call_cut_by_the_limit_is_no_call(limit: int) -> None:
    options: dict[str, Any] = {"tools": [WEATHER], "tool_choice": "required"}
    with writes(CALL, **options) as engine:
        result = engine.generate(ASK, SamplingParams(max_tokens=limit), **options)
    assert result.finish_reason == "length"
    complete = limit >= CALL.index(b"}}") + 2
    assert bool(result.message.get("tool_calls")) == complete


def test_a_stream_is_the_answer_in_pieces_and_cancels_when_it_is_left() -> None:
    text = "ok \U0001f600 done.".encode()
    with writes(text) as engine:
        events = list(engine.stream(ASK))
        assert "".join(event.text for event in events) == text.decode() == events[-1].result.text  # type: ignore[union-attr]
        assert [event.result is None for event in events] == [True] * (len(events) - 1) + [False]
        assert all("\ufffd" not in event.text for event in events)
        stream = engine.stream(ASK)
        next(stream)
        stream.close()  # type: ignore[attr-defined]
        assert engine.generate(ASK).text == text.decode()


def test_a_stream_that_is_dropped_unread_ends_within_a_round() -> None:
    target = after(len(ASK), [97] * 3000)
    with engine_for(target) as engine:
        stream = engine.stream(ASK)
        del stream
        engine.generate([1], SamplingParams(max_tokens=1))
        assert target.forwards < 50


def test_stop_strings_cut_the_text_alike_streamed_and_whole() -> None:
    params = SamplingParams(stop=["END"])
    with writes(b"abcENDxyz") as engine:
        whole = engine.generate(ASK, params)
        pieces = [event.text for event in engine.stream(ASK, params)]
    assert whole.text == "".join(pieces) == "abc"
    assert (whole.finish_reason, whole.usage.completion_tokens) == ("stop", 6)
    assert whole.stop_text == "END"


def test_async_twins_give_the_same_without_blocking_the_loop() -> None:
    async def ask(engine: Engine) -> tuple[str, str, str]:
        whole, other = await asyncio.gather(engine.agenerate(ASK), engine.agenerate(ASK))
        pieces = [event.text async for event in engine.astream(ASK)]
        return whole.text, other.text, "".join(pieces)

    with writes(b"Blue.") as engine:
        assert asyncio.run(ask(engine)) == ("Blue.",) * 3


def test_n_answers_come_with_the_first() -> None:
    with writes(b"Blue.") as engine:
        result = engine.generate(ASK, SamplingParams(n=3, temperature=1.0, seed=1))
    assert len({result.tokens, *(other.tokens for other in result.alternatives)}) <= 3
    assert len(result.alternatives) == 2
    assert result.alternatives[0].usage.cached_tokens in (0, 4)


def test_a_schema_is_held() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    with writes(b'{"n": 7}') as engine:
        assert json.loads(engine.generate(ASK, json_schema=schema).text) == {"n": 7}
    with writes(b"abcabc") as engine:
        assert engine.generate(ASK, regex="(abc)+").text == "abcabc"
        assert engine.generate(ASK, lark='start: "abc" "abc"').text == "abcabc"


def test_bad_words_in_text_are_kept_out_in_the_tokenizers_spellings() -> None:
    with writes(b"a bad word") as engine:
        result = engine.generate(ASK, SamplingParams(bad_words=["bad"], max_tokens=8))
    assert result.text.startswith("a ba")
    assert "bad" not in result.text


@pytest.mark.parametrize(
    ("prompt", "options", "error", "words"),
    [
        ("", {}, PromptError, "empty"),
        ([], {}, PromptError, "at least one"),
        ([1, "a"], {}, PromptError, r"prompt\[1\]"),
        ([{"role": "banana", "content": "x"}], {}, PromptError, r"messages\[0\]"),
        ("x" * 5000, {}, PromptTooLongError, "5000 tokens"),
        (ASK, {"json_schema": {"not": {}}}, GrammarError, "not"),
        (ASK, {"regex": "("}, GrammarError, "regex"),
        (ASK, {"regex": "a", "lark": 'start: "a"'}, ConfigError, "regex and lark"),
        (ASK, {"tools": [{"name": "x"}]}, ConfigError, r"tools\[0\]"),
        (ASK, {"tools": [WEATHER], "tool_choice": "wether"}, ConfigError, "wether"),
        (b"abc", {}, PromptError, "bytes"),
        (ASK, {"regex": 5}, ConfigError, "regex must be a text"),
        (ASK, {"speculate": "no"}, ConfigError, "speculate must be True or False"),
        (ASK, {"tools": 5}, ConfigError, "tools must be a list"),
        (ASK, {"grammar": "x"}, ConfigError, "no option is called 'grammar'"),
        (ASK, {"max_tokens": 4}, ConfigError, r"SamplingParams\(max_tokens=...\)"),
        ("a\ud800", {}, PromptError, r"the prompt holds a lone surrogate, '\\ud800' at character 1: not text"),
        ([{"role": "user", "content": "\udcff"}], {}, PromptError, r"messages\[0\].content holds a lone surrogate"),
        (CALLED, {}, PromptError, "the prompt, as the chat template writes it, holds a lone surrogate"),
        (ASK, {"prediction": "\ud800"}, ConfigError, "prediction holds a lone surrogate"),
        (ASK, {"regex": "\ud800"}, ConfigError, "regex holds a lone surrogate"),
        (ASK, {"lark": 'start: "\ud800"'}, ConfigError, "lark holds a lone surrogate"),
        (ASK, {"output_type": Regex("\ud800")}, GrammarError, "the regex holds a lone surrogate"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_first_forward(
    prompt: Any, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    target = after(5, list(b"x"))
    with engine_for(target) as engine, pytest.raises(error, match=words):
        engine.generate(prompt, **options)
    assert target.forwards == 0


def test_a_stream_has_one_answer_and_a_closed_engine_none() -> None:
    engine = writes(b"x")
    with pytest.raises(ConfigError, match="n=2"):
        engine.stream(ASK, SamplingParams(n=2))
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        engine.generate(ASK)


def test_an_answer_is_held_to_its_schema_behind_thoughts_that_the_prompt_began() -> None:
    asker = byte_asker()
    asker._chat.__dict__["reasoning"] = asker._chat.form.reasoning  # as of a model whose template has the markers
    asker._chat.opened = lambda prompt: True  # type: ignore[method-assign]
    ask = [{"role": "user", "content": "x"}]
    target = after(len(asker.tokens(ask)), list(b'So {.\n</think>\n\n{"a": 1}'))
    core = EngineCore(target, ProposerPool([]), controller=FixedController(8), config=EngineConfig())
    with Engine(core, asker) as engine:
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        result = engine.generate(ask, json_schema=schema)
    assert result.message == {"role": "assistant", "content": '{"a": 1}', "reasoning_content": "So {."}


def loving_blanks(prompt_length: int, output: bytes) -> ScriptedTarget:
    """Prefers newlines, then spaces, then what it should write."""

    def logits(tokens: Sequence[int]) -> dict[int, float]:
        place = len(tokens) - prompt_length
        return {output[place] if place < len(output) else END: 8.0, 10: 10.0, 32: 9.0}

    return ScriptedTarget(logits, vocab_size=320, eos=frozenset({END, 257}))


@pytest.mark.parametrize("name", ["now", "ping"])
def test_p11_a_call_without_parameters_has_no_room_for_blanks(name: str) -> None:
    options: dict[str, Any] = {"tools": NOTHING_TO_SAY, "tool_choice": {"type": "function", "function": {"name": name}}}
    with engine_for(loving_blanks(0, b"")) as engine:
        result = engine.generate(ASK, SamplingParams(max_tokens=200), **options)
    (call,) = result.message["tool_calls"]
    assert (call["function"], result.finish_reason) == ({"name": name, "arguments": "{}"}, "tool_calls")
    assert result.text == f'<tool_call>\n{{"name": "{name}", "arguments": {{}}}}\n</tool_call>'


def test_p11_tools_beside_one_without_parameters_stay_usable() -> None:
    options: dict[str, Any] = {"tools": NOTHING_TO_SAY}
    with writes(CALL.replace(b"weather", b"w"), **options) as engine:
        (call,) = engine.generate(ASK, **options).message["tool_calls"]
    assert call["function"] == {"name": "w", "arguments": '{"city": "Oslo"}'}


@pytest.mark.parametrize(("whitespace", "most", "longest"), [("fixed", 64, 3), ("bounded", 160, 25)])
def test_p14_a_target_in_love_with_blanks_ends_its_document(whitespace: Any, most: int, longest: int) -> None:
    with engine_for(loving_blanks(len(ASK), b'{"a": "b"}')) as engine:
        options: dict[str, Any] = {"json_schema": SHORT_TEXT, "json_whitespace": whitespace}
        result = engine.generate(ASK, SamplingParams(max_tokens=most), **options)
        assert engine.generate(ASK, SamplingParams(max_tokens=most), **options, speculate=False).tokens == result.tokens
    assert (json.loads(result.text), result.finish_reason) == ({"a": "   "}, "stop")
    assert max(map(len, re.findall(r"\s+", result.text))) == longest  # three in the string, or a newline and 24 blanks


def test_p15_an_enumeration_in_a_tool_is_held_whatever_the_target_would_write() -> None:
    options: dict[str, Any] = {"tools": [as_tool("order", {"enum": ["S"]})], "tool_choice": "required"}
    wanted = b'<tool_call>\n{"name": "order", "arguments": {"x": "L"}}\n</tool_call>'
    for speculate in (True, False):
        with writes(wanted, **options) as engine:
            result = engine.generate(ASK, SamplingParams(max_tokens=200), speculate=speculate, **options)
        assert result.message["tool_calls"][0]["function"]["arguments"] == '{"x": "S"}'


@pytest.mark.parametrize("split", [[*"😨".encode()], [265, 152, 168], [265, 266]], ids=str)
@pytest.mark.parametrize("speculate", [True, False])
def test_p16_a_character_of_several_tokens_is_never_half_a_character(split: list[int], speculate: bool) -> None:
    text = b"".join(TV.tokens[token] for token in split).decode()
    with engine_for(after(len(ASK), [*split, *split, *split])) as engine:
        events = list(engine.stream(ASK, regex="[😀-🙏]+", speculate=speculate))
    assert "".join(event.text for event in events) == 3 * text
    assert {event.text for event in events} <= {"", text, 2 * text, 3 * text}


TWO_CALLS = (
    'Sure.<tool_call>\n{"name": "get_weather", "arguments": {"x": "Oslo"}}\n</tool_call>'
    '\n<tool_call>\n{"name": "get_time", "arguments": {"x": ""}}\n</tool_call>'
)


@pytest.mark.parametrize("budget", [0, 1, 2, 5, 16])
def test_p17_streamed_calls_do_not_depend_on_how_many_tokens_a_round_gives(budget: int) -> None:
    tools = [as_tool(name, {"type": "string"}) for name in ("get_weather", "get_time")]
    prompt = byte_asker().tokens(ASK, read_tools(tools))
    core = EngineCore(
        after(len(prompt), [*TWO_CALLS.encode()]),
        ProposerPool([GrammarProposer(TV), SuffixProposer(TV)]),
        controller=FixedController(budget),
        config=EngineConfig(),
    )
    builder = MessageBuilder()
    with Engine(core, byte_asker()) as engine:
        for event in engine.stream(ASK, SamplingParams(stop=["</stop>"]), tools=tools, prediction=TWO_CALLS):
            builder.add(event.deltas)
            assert "<" not in "".join(delta.text for delta in event.deltas if isinstance(delta, TextDelta))
    message = builder.message()
    assert message.content == "Sure."
    calls = [(call.name, call.arguments) for call in message.tool_calls]
    assert calls == [("get_weather", '{"x": "Oslo"}'), ("get_time", '{"x": ""}')]
    assert event.result is not None
    assert (event.result.message["content"], event.result.stats.forwards < 60) == ("Sure.", budget > 1)
