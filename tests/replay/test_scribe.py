"""Recorded answers in the tokens that the engine would have had to write."""

from __future__ import annotations

import json
from typing import Any

import pytest
from engine_doubles import ByteTokenizer
from toy_vocabulary import EOS, TV

from agentspec.errors import TraceError
from agentspec.replay.asks import asked_of, held_to, params_of
from agentspec.replay.scribe import Scribe, Transcribed
from agentspec.replay.turns import Turn

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "look", "parameters": SCHEMA}}


class Tokenizer(ByteTokenizer):
    eos_token_id = EOS


def turn(answer: dict[str, Any], **given: Any) -> Turn:
    said = {"role": "assistant", "content": None, **answer} if answer else None
    given = {"tools": (), "file": "f", "line": 1, "called": bool(answer.get("tool_calls")), "answer": said, **given}
    return Turn("t", 1, ({"role": "user", "content": "x"},), **given)


def call(arguments: str) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": "look", "arguments": arguments}}


def transcribed(given: Turn) -> tuple[Transcribed, str]:
    found = Scribe(Tokenizer(), TV).transcribe(given, asked_of(given))
    *text, end = found.recorded.answer
    assert end == EOS
    return found, b"".join(TV.tokens[token] for token in text).decode()


@pytest.mark.parametrize(
    ("message", "held", "loosened", "text"),
    [
        ({"tool_calls": [call('{"n":1}')]}, "required", False, '{"n": 1}'),
        ({"content": "Wait.", "tool_calls": [call('{"n": 1}')]}, "auto", False, "Wait.\n"),
        ({"tool_calls": [call('{"n": "one"}')]}, "free", True, '"one"'),
        ({"content": "Just text."}, "auto", False, "Just text."),
    ],
)
def test_an_answer_is_held_to_the_strictest_that_allows_it(message, held, loosened, text) -> None:
    found, written = transcribed(turn(message, tools=(TOOL,)))

    assert (found.held, found.loosened) == (held, loosened)
    assert text in written


def test_what_was_asked_is_asked_again_and_a_longer_answer_is_cut() -> None:
    message = {"content": '{"n": 7}'}
    told = turn(message, tools=(TOOL,), schema=SCHEMA, options={"tool_choice": "auto", "caller": "ann"})
    found = Scribe(Tokenizer(), TV).transcribe(told, asked_of(told), max_tokens=4)

    assert asked_of(turn(message, tools=(TOOL,), schema=SCHEMA)) == {"json_schema": SCHEMA}
    assert asked_of(told) == {"json_schema": SCHEMA, "tools": (TOOL,), "tool_choice": "auto"}
    assert (found.held, found.recorded.order.params.max_tokens, len(found.recorded.answer)) == ("schema", 4, 4)


def test_recorded_ids_end_where_they_did() -> None:
    ids = tuple(b"Rome.")
    cut, told = (
        turn({"content": "Rome."}, tokens=ids, params=params) for params in ({}, {"max_tokens": 5, "stop": "."})
    )
    other = turn({"content": "Rome."}, tokens=(7,), params={"stop_token_ids": [ord("o")]})
    limits = [Scribe(Tokenizer(), TV).transcribe(each, {}).recorded.order.params for each in (cut, told, other)]

    assert [(each.max_tokens, each.stop, each.stop_token_ids) for each in limits] == [
        (5, (), ()),
        (5, (".",), ()),
        (None, (), ()),
    ]


@pytest.mark.parametrize(
    ("options", "held"),
    [
        ({"json_schema": SCHEMA}, "schema"),
        ({"json_schema": SCHEMA, "tools": [TOOL], "tool_choice": "auto"}, "schema"),
        ({"json_schema": SCHEMA, "tools": [TOOL], "tool_choice": "look"}, "required"),
        ({"regex": "a", "tools": [TOOL], "tool_choice": "required"}, "required"),
        ({"regex": "a", "tools": [TOOL], "tool_choice": "none"}, "regex"),
        ({"lark": "a"}, "lark"),
        ({"tools": [TOOL], "tool_choice": "none"}, "free"),
    ],
)
def test_what_holds_an_answer_has_one_name(options, held) -> None:
    assert held_to(options) == held


def test_a_limit_lowers_the_least_too_and_what_nobody_can_ask_is_refused() -> None:
    told = turn({"content": "a"}, params={"min_tokens": 300, "logit_bias": {"5": 1.0}}, options={"nonsense": 1})
    found = params_of(told, 9, own=False)

    assert (found.max_tokens, found.min_tokens, found.logit_bias) == (9, 9, {})
    with pytest.raises(TraceError, match="the recorded options have 'nonsense'; there are: parallel_tool_calls"):
        asked_of(told)


def test_calls_that_nobody_asked_for_are_free_text() -> None:
    found, written = transcribed(
        turn({"tool_calls": [call('{"n": 1}')]}, tools=(TOOL,), options={"tool_choice": "none"})
    )

    assert (found.held, found.loosened) == ("free", True)
    assert '{"n": 1}' in written


def test_a_document_is_written_in_the_grammars_white_space_unless_it_breaks_its_schema() -> None:
    found, written = transcribed(turn({"content": '{\n "n":  7}'}, schema=SCHEMA))
    assert (found.held, written) == ("schema", '{"n": 7}')

    found, written = transcribed(turn({"content": '{\n "m":  7}'}, schema=SCHEMA))
    assert (found.held, found.loosened, written) == ("free", True, '{\n "m":  7}')


def test_recorded_tokens_are_used_where_they_spell_the_answer_and_only_there() -> None:
    ids = (*b"he", *b"llo", EOS)  # a byte each: "ll" would be one where the text was split anew
    prompt = tuple(b"as it was")

    found, _ = transcribed(turn({"content": "hello"}, tokens=ids, prompt=prompt))
    assert (found.own_ids, found.recorded.answer, found.recorded.order.prompt) == (True, ids, list(prompt))
    found, _ = transcribed(turn({"content": "hello"}, tokens=tuple(b"other"), prompt=prompt))
    assert (found.own_ids, bytes(found.recorded.order.prompt)) == (False, b"user: x\nassistant:")


def test_a_task_without_an_answer_and_an_answer_of_nothing_can_not_be_replayed() -> None:
    with pytest.raises(TraceError, match="no answer is recorded"):
        transcribed(turn({}))
    with pytest.raises(TraceError, match="the recorded answer is empty"):
        transcribed(turn({"content": ""}))


def test_names_of_control_tokens_in_an_answer_stay_text() -> None:
    assert json.dumps("<|im_end|>") in transcribed(turn({"content": 'say "<|im_end|>"'}))[1]
