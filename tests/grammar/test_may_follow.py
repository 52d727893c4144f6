"""A token may follow exactly if the mask has it, told without the mask or with it: greedy picks are taken unmasked."""

from __future__ import annotations

import random

import pytest
from engine_doubles import ByteTokenizer
from toy_vocabulary import EOS, IM_END, MERGING, TOKENS, TV, walk

from agentspec.chat.calls import Written
from agentspec.chat.chat import Chat
from agentspec.chat.formats.registry import FORMATS
from agentspec.grammar.base import Cursor, Guide
from agentspec.grammar.either import Either
from agentspec.grammar.llg import EndCursor, LlgGuide, compile_lark, regex_guide
from agentspec.grammar.masks import allows
from agentspec.grammar.reasoned import Reasoned, Reasoning
from agentspec.grammar.schema import schema_guide
from agentspec.grammar.spelling import Spelling
from agentspec.grammar.tools import read_tools
from agentspec.grammar.until import Opening, UntilCall
from agentspec.grammar.vocabulary import Vocabulary

SPLITTING = Vocabulary(TV.tokens, special=TV.special, eos=[EOS, IM_END], encode=TV.engine.greedy_tokenize)
PADDED = Vocabulary([*TOKENS, *[None] * 9], special=TV.special, eos=[EOS])
SCHEMA = {"type": "object", "properties": {"a": {"enum": ["b", "true"]}, "n": {"type": "integer"}}}
SCHEMA |= {"required": ["a", "n"], "additionalProperties": False}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = read_tools([{"function": {"name": "now"}}, {"function": {"name": "weather", "parameters": CITY}}])
THINK = Reasoning("<t>", "</t>")
BARRED = UntilCall(Spelling(TV, ("<c>",)), [Opening("<c>")], None)
GUIDES = {
    "schema": schema_guide(TV, SCHEMA),
    "forced": schema_guide(SPLITTING, SCHEMA),
    "an end token with text": schema_guide(Vocabulary(TV.tokens, special=TV.special, eos=[EOS, 125]), SCHEMA),
    "padded": regex_guide(PADDED, "(?s:.*)"),
    "split with what follows": compile_lark(MERGING, 'start: "[" "{}}" ("]" | "," "{}}")*'),
    "no calls": BARRED,
    "thoughts": Reasoned(regex_guide(TV, "ab?"), Spelling(TV, ("<t>", "</t>")), THINK),
    "either": Either(BARRED, schema_guide(TV, SCHEMA)),
}
for form in FORMATS.values():
    made = Chat(ByteTokenizer(), TV, tool_format=form.name)
    GUIDES |= {f"{form.name}, {choice}": made.guide(TOOLS, choice) for choice in ("auto", "required", "none")}
TEXTS = [form.write([Written("weather", {"city": "Oslo"})]).encode() for form in FORMATS.values()]
TEXTS += [b'{"a": "true", "n": 1}', b"[{}},{}}", b"<t>x</t>ab", b"a <c", b"<t>x</t"]


def allowed(cursor: Cursor, token: int) -> bool:
    mask = cursor.mask()
    return mask is None or allows(mask, token)


def along(guide: Guide, texts: list[bytes], rng: random.Random) -> list[int]:
    """A path of tokens under the guide: what it allows of one of the texts, and now and then what it allows besides."""
    cursor, path = guide.start(), list[int]()
    for byte in [*rng.choice(texts), EOS]:
        legal = [token for token in range(len(TOKENS)) if allowed(cursor, token)]
        token = byte if byte in legal and rng.random() < 0.95 else rng.choice(legal)
        following = cursor.advance(token)
        if following is None or isinstance(following, EndCursor):
            break
        cursor, path = following, [*path, token]
    return path


@pytest.mark.parametrize("name", GUIDES)
def test_a_token_may_follow_exactly_if_the_mask_has_it(name: str) -> None:
    # Ids from 269 on are none of the vocabulary: padding, which a mask never has and free text lets through.
    guide, rng = GUIDES[name], random.Random(1)
    for _ in range(12):
        path = along(guide, TEXTS, rng)
        for end in range(0, len(path) + 1, 3):
            unmasked, masked = walk(guide, path[:end]), walk(guide, path[:end])
            assert unmasked is not None
            assert masked is not None
            asked = (*range(0, 256, 5), *b'{}[]"<>,ab', *range(256, 290), 5_000)
            took = [unmasked.advance(token) is not None for token in asked]
            assert took == [allowed(masked, token) for token in asked], path[:end]


def test_what_is_left_of_a_forced_run_is_what_the_place_itself_forces() -> None:
    guide = GUIDES["forced"]
    assert isinstance(guide, LlgGuide)
    run = guide.start().forced(99)
    assert run == (258, 97, 264, 34)
    for size in range(1, len(run)):
        inherited, fresh = walk(guide, run[:size]), guide.after_tokens(run[:size])
        assert inherited is not None
        assert fresh is not None
        assert inherited.forced(99) == fresh.forced(99) == run[size:]
        assert (inherited.mask() == fresh.mask()).all()


def test_padding_may_follow_only_where_nothing_is_kept_out() -> None:
    # An id past the vocabulary spells nothing, so it would leave the text where it was.
    barred, free = BARRED.start(), UntilCall(Spelling(TV, ("<c>",)), [Opening("<c>")], compile_lark(TV, 'start: "<c>"'))
    partly = walk(BARRED, b"a <c")
    assert partly is not None
    assert partly.advance(5_000) is None
    assert (barred.advance(5_000) is None) == (barred.mask() is not None)
    assert free.start().advance(5_000) is not None
    thought = walk(GUIDES["thoughts"], b"<t>x")
    assert thought is not None
    assert thought.advance(5_000) is None
