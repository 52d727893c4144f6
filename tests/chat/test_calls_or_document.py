"""Tools together with a response format: the answer is calls, or a text that something else holds, and never both."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from engine_doubles import ByteTokenizer
from format_doubles import CALLS, TOOLS, chat, cuts
from format_doubles import spelled as text_of
from toy_vocabulary import EOS, walk

from agentspec.chat.base import Message, MessageBuilder
from agentspec.chat.chat import Chat
from agentspec.chat.formats.base import ToolFormat
from agentspec.chat.formats.registry import FORMATS
from agentspec.config import SamplingParams
from agentspec.grammar.base import Guide
from agentspec.local.ask import Ask, Asker
from agentspec.proposers.base import Context
from agentspec.proposers.grammar import GrammarProposer
from agentspec.segments import Segment

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "note": {"type": "string"}},
    "required": ["name", "note"],
    "additionalProperties": False,
}
ASKED = [{"role": "user", "content": "?"}]
EVERY = [(form, controls) for form in FORMATS.values() for controls in (False, True)]
EACH = pytest.mark.parametrize(
    ("form", "controls"), EVERY, ids=[f"{form.name}-{'control' if controls else 'text'}" for form, controls in EVERY]
)


def guide_of(made: Chat, choice: Any = "auto", **options: Any) -> Guide:
    tools = [tool.definition for tool in TOOLS]
    held: dict[str, Any] = {"json_schema": PERSON, "tools": tools, "tool_choice": choice, **options}
    return Asker(ByteTokenizer(), made._vocabulary, made).read(Ask(ASKED, SamplingParams(), held))[0][0].guide


def spelled(made: Chat, text: str) -> list[int]:
    tokens = made._spelling.tokens(text.encode())
    assert tokens is not None
    return tokens


def read(made: Chat, parts: Iterable[str]) -> Message:
    number, builder = itertools.count(), MessageBuilder()
    parser = made.parser(TOOLS, held=True, new_id=lambda: f"call_{next(number)}")
    for part in parts:
        builder.add(parser.feed(part))
    builder.add(parser.finish())
    return builder.message()


def document(form: ToolFormat) -> str:
    """One that looks like calls to who reads it carelessly: it has a tool's name, and markers within its text."""
    shown = "[f()] to=functions.f{}" if form.hidden else form.write(CALLS[1:2]) + " ".join(form.markers)
    return json.dumps({"name": "get_time", "note": shown}, ensure_ascii=False)


@EACH
def test_a_document_is_allowed_as_a_whole_and_read_as_text_whatever_it_looks_like(
    form: ToolFormat, controls: bool
) -> None:
    made, _ = chat(form, controls=controls)
    text, frame = document(form), (form.frames or ("",))[0]
    cursor = walk(guide_of(made), [*spelled(made, frame), *text.encode()])
    assert cursor is not None
    assert cursor.accepting
    for parts in cuts(frame + text, random_ones=10):
        message = read(made, parts)
        assert (message.content, message.tool_calls, message.broken_calls) == (text, (), ())


@EACH
def test_calls_are_allowed_and_read_one_or_more(form: ToolFormat, controls: bool) -> None:
    made, _ = chat(form, controls=controls)
    for calls in (CALLS[:1], CALLS[:3]):
        text = form.write(calls)
        cursor = walk(guide_of(made), spelled(made, text))
        assert cursor is not None
        assert cursor.accepting
        for parts in cuts(text, random_ones=10) if calls == CALLS[:1] else [[text]]:
            message = read(made, parts)
            assert [(call.name, call.arguments) for call in message.tool_calls] == [(c.name, c.json) for c in calls]
            assert (message.content, message.broken_calls) == ("", ())


@EACH
def test_nothing_else_is_allowed(form: ToolFormat, controls: bool) -> None:
    made, _ = chat(form, controls=controls)
    call, whole = spelled(made, form.write(CALLS[1:2])), (form.frames or ("",))[0] + '{"name": "A", "note": ""}'
    text = spelled(made, whole)
    for wrong in ([*b"Hi"], [*b"Hi ", *call], [*text, *call], [*call, *text], [*text[:-1], EOS], [EOS]):
        assert walk(guide_of(made), wrong) is None
    assert walk(guide_of(made), [*text, EOS]) is not None
    assert walk(guide_of(made, parallel_tool_calls=False), [*call, *call]) is None
    for choice in ("required", "get_time"):
        assert walk(guide_of(made, choice), text) is None
        assert walk(guide_of(made, choice), call) is not None
    assert walk(guide_of(made, "none"), text) is not None
    assert walk(guide_of(made, "none"), call) is None


@pytest.mark.parametrize("called", [False, True])
def test_thoughts_may_come_before_either(called: bool) -> None:
    made, _ = chat(FORMATS["hermes"])
    made.reasoning = made.form.reasoning  # no template was asked whether it knows the markers
    text = made.form.write(CALLS[:1]) if called else '{"name": "A", "note": "<think>"}'
    cursor = walk(guide_of(made), f"<think>Hm, {{}}</think>\n\n{text}".encode())
    assert cursor is not None
    assert cursor.accepting
    message = read(made, [f"<think>Hm, {{}}</think>\n\n{text}"])
    assert (message.reasoning, message.content) == ("Hm, {}", "" if called else text)
    assert len(message.tool_calls) == called


def segments(guide: Guide, tokens: Sequence[int]) -> list[Segment]:
    cursor, found = guide.start(), []
    for token in tokens:
        found.append(cursor.segment)
        cursor = cursor.advance(token)  # type: ignore[assignment]
    return found


@EACH
def test_segments_are_those_of_calls_alone_and_of_a_document_alone(form: ToolFormat, controls: bool) -> None:
    made, _ = chat(form, controls=controls)
    call = spelled(made, form.write(CALLS[:1]))
    assert segments(guide_of(made), call) == segments(guide_of(made, "required"), call)
    text = spelled(made, (form.frames or ("",))[0] + '{"name": "Ann", "note": "x"}')
    apart = text.index(ord("A"))  # up to there it may be a call of Llama's
    assert segments(guide_of(made), text)[apart + 1 :] == segments(guide_of(made, "none"), text)[apart + 1 :]


def test_both_are_drafted_where_either_may_come() -> None:
    made, tokens = chat(FORMATS["hermes"], controls=True)
    context = Context(0, [65], guide_of(made).start(), SamplingParams(), seed=0, budget=64)
    (draft,) = GrammarProposer(tokens).propose([context])
    leaves = set(range(len(draft))) - set(draft.parents)
    texts = [text_of(tokens, [draft.tokens[node] for node in draft.path(leaf)]) for leaf in leaves]
    assert sorted(texts) == ['<tool_call>\n{"name": "', '{"name": "']
