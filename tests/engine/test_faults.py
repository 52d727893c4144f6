"""Public faults of other engines, as small cases: each must come out as plain decoding has it."""

from collections.abc import Callable, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_vocabulary import TV

from agentspec.chat.stream import StopRule
from agentspec.config import EngineConfig, SamplingParams
from agentspec.draft import ROOT, Draft
from agentspec.engine.core import EngineCore
from agentspec.engine.request import Order
from agentspec.grammar.base import Guide
from agentspec.grammar.schema import schema_guide
from agentspec.grammar.track import TrackedGuide
from agentspec.models.toy import tiny_target
from agentspec.proposers.base import Context, Off
from agentspec.proposers.grammar import GrammarProposer
from agentspec.proposers.model import ModelProposer
from agentspec.proposers.pool import ProposerPool
from agentspec.proposers.suffix import SuffixProposer
from agentspec.segmenter import Segmenter
from agentspec.testing import FixedController, ScriptedProposer, ScriptedTarget, assert_lossless, order, run

END, IM_END = 256, 257
PROMPT = [65, 66]


def writing(output: Sequence[int], prompt: Sequence[int] = PROMPT) -> ScriptedTarget:
    return ScriptedTarget.writing(prompt, output, vocab_size=320, end=END)


@pytest.mark.parametrize(("end_at", "size"), list(product(range(7), range(1, 7))))
def test_p1_an_end_token_inside_an_accepted_run_ends_the_output(end_at: int, size: int) -> None:
    script = [72, 105, 80, 81, 82, 83, 84]
    script[end_at] = END
    target = writing([*script, 88, 89])
    (answer,) = run(
        target, ScriptedProposer(*([*script[place:], 88, 89] for place in range(7))), order(PROMPT), max_draft=size
    )
    assert answer.tokens == tuple(script[: end_at + 1])
    assert answer.finish_reason == "stop"


def test_p1_what_is_committed_is_what_plain_decoding_commits() -> None:
    for proposer in (Off(), ScriptedProposer([72, 105, END, 88, 89])):
        target = writing([72, 105, END, 88])
        core = EngineCore(target, proposer, controller=FixedController(8), config=EngineConfig())
        core.add(order(PROMPT))
        while not core.idle:
            core.step()
        # The prompt and two tokens: the last pick is never in the cache.
        assert target.slots[0].tokens == [*PROMPT, 72, 105]


def test_p1_prompt_lookup_does_not_copy_past_an_end_token() -> None:
    prompt = [65, 66, END, 67, 68, 65, 66]
    (answer,) = run(writing([END], prompt), SuffixProposer(TV), order(prompt))
    assert answer.tokens == (END,)


@pytest.mark.parametrize("size", range(1, 10))
@pytest.mark.parametrize(
    ("text", "stops", "expected"),
    [
        (list(b"abcENDxyz"), ["END"], 6),
        ([97, 263, 98], ["\n\n"], 2),  # one token spells both newlines
        ([97, 10, 10, 98], ["\n\n"], 3),  # two tokens do
        (list(b"xxabcd"), ["b", "bc"], 4),
    ],
)
def test_p2_a_stop_string_inside_a_block_ends_the_output(
    text: list[int], stops: list[str], expected: int, size: int
) -> None:
    make = lambda: Order(  # noqa: E731
        prompt=PROMPT, params=SamplingParams(seed=0, stop=stops), stop_rule=StopRule(TV, stops)
    )
    perfect = ScriptedProposer(*(text[place:] for place in range(len(text))))
    (answer,) = assert_lossless(writing([*text, END]), perfect, make, max_draft=size)
    assert (len(answer.tokens), answer.finish_reason) == (expected, "stop")


def likely(counts: dict[int, float]) -> ScriptedTarget:
    """A target that always gives these logits."""
    return ScriptedTarget(lambda tokens: counts, vocab_size=320, eos=frozenset({END}))


@pytest.mark.parametrize("size", range(1, 7))
@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"frequency_penalty": 0.6}, [97, 97, 98, 97, 98, 97]),  # 10, 9.4 > 9, 8.8 < 9, ...
        ({"logit_bias": {"97": -100}}, [98] * 6),
        ({"repetition_penalty": 2.0}, [97, 98, 97, 97, 97, 97]),
        ({"bad_words": [(97, 97)]}, [97, 98, 97, 98, 97, 98]),
    ],
)
def test_p4_processors_act_on_every_row_of_a_block(params: dict[str, object], expected: list[int], size: int) -> None:
    make = lambda: order(PROMPT, max_tokens=6, **params)  # noqa: E731
    (answer,) = assert_lossless(likely({97: 10.0, 98: 9.0}), ScriptedProposer([97] * 6), make, max_draft=size)
    assert list(answer.tokens) == expected


def test_p4_min_tokens_holds_the_end_back_on_every_row() -> None:
    make = lambda: order(PROMPT, max_tokens=6, min_tokens=4)  # noqa: E731
    (answer,) = assert_lossless(likely({END: 10.0, 97: 9.0}), ScriptedProposer([97] * 6), make)
    assert answer.tokens == (97, 97, 97, 97, END)


def test_p5_an_exact_tie_goes_to_the_lowest_id_in_both_loops() -> None:
    (answer,) = assert_lossless(
        likely({5: 3.0, 9: 3.0}), ScriptedProposer([9, 5, 9]), lambda: order(PROMPT, max_tokens=8)
    )
    assert answer.tokens == (5,) * 8


def test_p5_many_rows_and_one_row_agree_over_many_prompts() -> None:
    target, poor = tiny_target(), tiny_target(layers=1, seed=1)
    make: list[Callable[[], Order]] = [
        lambda index=index: order([(index * 37 + place * 11) % 320 for place in range(8)], max_tokens=24)  # type: ignore[misc]
        for index in range(12)
    ]
    for proposer in (ModelProposer(target, eos=frozenset()), ModelProposer(poor, eos=frozenset()), SuffixProposer(TV)):
        assert_lossless(target, proposer, *make, max_draft=5)


def test_p7_a_model_that_drafts_for_itself_is_always_right() -> None:
    target = tiny_target()
    proposer = ModelProposer(target, eos=frozenset())
    (answer,) = run(target, proposer, order([3, 1, 4, 1, 5, 9], max_tokens=41), max_draft=4)
    # 41 tokens are eight rounds of five and one of one: a draft cache rewound by the wrong amount loses some.
    assert [len(event.tokens) for event in answer.events] == [5] * 8 + [1]


class Spoiled(ModelProposer):
    """Replaces every third draft's second token, and sits every fifth round out."""

    rounds = 0

    def propose(self, contexts):  # type: ignore[no-untyped-def]
        Spoiled.rounds += 1
        if Spoiled.rounds % 5 == 0:
            return [ScriptedProposer([]).propose(contexts)[0] for _ in contexts]
        drafts = super().propose(contexts)
        if Spoiled.rounds % 3:
            return drafts
        wrong = [[*draft.tokens[:1], (draft.tokens[1] + 1) % 320, *draft.tokens[2:]] for draft in drafts]
        return [type(draft).chain(tokens, self.name, 0.9) for draft, tokens in zip(drafts, wrong, strict=True)]


def test_p7_acceptance_recovers_after_a_rejection_and_after_a_round_without_a_draft() -> None:
    target = tiny_target()
    (answer,) = run(target, Spoiled(target, eos=frozenset()), order([3, 1, 4, 1, 5, 9], max_tokens=60), max_draft=4)
    #                                            round   1  2  3  4  5  6  7  8  9 10
    assert [len(event.tokens) for event in answer.events][:10] == [5, 5, 2, 5, 1, 2, 5, 5, 2, 1]


MOOD = {
    "type": "object",
    "properties": {"mood": {"enum": ["ok", "bad"]}},
    "required": ["mood"],
    "additionalProperties": False,
}


def backticks_but_for(document: Sequence[int]) -> ScriptedTarget:
    """Unmasked it writes backticks for ever; the document is its second choice."""
    script = [*PROMPT, *document]

    def logits(tokens: Sequence[int]) -> dict[int, float]:
        on_script = list(tokens) == script[: len(tokens)] and len(tokens) < len(script)
        return {96: 10.0, script[len(tokens)] if on_script else END: 9.0}

    return ScriptedTarget(logits, vocab_size=320, eos=frozenset({END, IM_END}))


def held_to(schema: dict[str, object], *, tracked: bool = True, **params: object) -> Callable[[], Order]:
    guide: Guide = schema_guide(TV, schema)
    if tracked:
        guide = TrackedGuide(guide, TV, Segmenter(document=True))
    params = {"seed": 0, **params}
    return lambda: Order(prompt=PROMPT, params=SamplingParams.of(params), guide=guide)


DOCUMENT = b'{"mood": "ok"}'


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("draft", [b"", DOCUMENT, b"```json\n", b'{"color":"red"}', b'{"color": "red"}', b" null"])
def test_p8_an_illegal_draft_is_a_rejection_like_any_other(
    draft: bytes, tracked: bool, caplog: pytest.LogCaptureFixture
) -> None:
    target = backticks_but_for([*DOCUMENT, END])
    (answer,) = assert_lossless(target, ScriptedProposer(list(draft)), held_to(MOOD, tracked=tracked))
    assert bytes(answer.tokens[:-1]) == DOCUMENT
    assert (answer.tokens[-1], answer.finish_reason) == (END, "stop")
    assert not caplog.records


@given(st.lists(st.integers(0, 319), max_size=8))
def test_p8_any_draft_gives_the_same_document(draft: list[int]) -> None:
    (answer,) = run(backticks_but_for([*DOCUMENT, END]), ScriptedProposer(draft), held_to(MOOD)())
    assert bytes(answer.tokens[:-1]) == DOCUMENT


FORCED = {
    "type": "object",
    "properties": {"status": {"enum": ["ok"]}, "n": {"type": "integer"}},
    "required": ["status", "n"],
    "additionalProperties": False,
}
CHOICES = {**FORCED, "properties": {"status": {"enum": ["off", "ok"]}, "n": {"enum": [6, 7]}, "z": {"const": ""}}}


def apart(document: Sequence[int]) -> ScriptedTarget:
    """Writes the document; at its start the token that spells `{"` is the second choice, before the brace alone."""
    script = [*PROMPT, *document]

    def logits(tokens: Sequence[int]) -> dict[int, float]:
        on_script = list(tokens) == script[: len(tokens)] and len(tokens) < len(script)
        return {258: 9.0, script[len(tokens)] if on_script else END: 10.0}

    return ScriptedTarget(logits, vocab_size=320, eos=frozenset({END, IM_END}))


@pytest.mark.parametrize("max_tokens", [5, 14, 40])
@pytest.mark.parametrize("schema", [FORCED, CHOICES], ids=["forced", "choices"])
def test_p9_forced_text_is_committed_in_the_tokens_that_the_target_picks(schema: dict, max_tokens: int) -> None:
    document = [*b'{"status": "ok", "n": 7}', END]
    proposer = ProposerPool([GrammarProposer(TV)])
    (answer,) = assert_lossless(apart(document), proposer, held_to(schema, max_tokens=max_tokens))
    assert list(answer.tokens) == document[:max_tokens]
    assert answer.tokens[:2] == (123, 34)
    stats = answer.events[-1].stats
    assert stats is not None
    assert 0 < stats.accepted["grammar"] < stats.drafted["grammar"]  # 258 was proposed, and not taken


def test_p9_forced_text_that_the_target_splits_as_the_tokenizer_does_is_accepted() -> None:
    split = [258, *b"status", 264, 34, *b"ok", 261, 110, 264, 55, 125, END]
    (answer,) = run(backticks_but_for(split), GrammarProposer(TV), held_to(FORCED)(), max_draft=16)
    assert list(answer.tokens) == split
    assert len(answer.events) < len(split) / 2


def test_p10_an_id_without_text_is_never_picked_under_a_grammar() -> None:
    true = 262
    target = ScriptedTarget(lambda tokens: {300: 10.0, true: 9.0}, vocab_size=320, eos=frozenset({END}))
    (answer,) = assert_lossless(target, ScriptedProposer([300, 300]), held_to({"type": "boolean"}, max_tokens=4))
    assert answer.tokens[0] == true


class Always(Off):
    """Proposes this draft at every place."""

    def __init__(self, draft: Draft) -> None:
        self.name, self.sources, self._draft = "always", tuple(set(draft.sources)), draft  # type: ignore[misc]

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        return [self._draft] * len(contexts)


@pytest.mark.parametrize("outside", [320, 340, -1])
@pytest.mark.parametrize("guided", [False, True])
def test_p10_a_drafted_id_outside_the_vocabulary_is_dropped_before_the_forward(outside: int, guided: bool) -> None:
    make = held_to({"type": "string", "minLength": 9}, max_tokens=6) if guided else lambda: order(PROMPT, max_tokens=6)
    target = tiny_target(eos=[END, IM_END])
    tree = Draft((outside, 34, outside, 98), (ROOT, ROOT, 1, 1), (0.5,) * 4, ("tree",) * 4)
    for proposer in (ScriptedProposer([outside, 5], [7, outside]), Always(tree), ProposerPool([Always(tree)])):
        (answer,) = assert_lossless(target, proposer, make)
        assert len(answer.tokens) == 6
        drafted = [token for event in answer.events if event.record for token in event.record.draft.tokens]
        assert outside not in drafted


@pytest.mark.parametrize(("width", "guess", "kept"), [(288, 287, True), (352, 340, False)])
def test_p10_a_draft_model_of_another_width_serves_all_the_same(width: int, guess: int, kept: bool) -> None:
    guesses = ScriptedTarget(lambda tokens: {guess: 10.0}, vocab_size=width)
    target = ScriptedTarget(lambda tokens: {287: 10.0}, vocab_size=320)
    for proposer in (ModelProposer(guesses, eos=frozenset()), ProposerPool([ModelProposer(guesses, eos=frozenset())])):
        (answer,) = assert_lossless(target, proposer, lambda: order([3, 300, 5, 6], max_tokens=24))
        assert (len(answer.events) < 6) == kept


def test_p10_a_random_draft_model_of_another_width_changes_nothing() -> None:
    for width in (288, 352):
        proposer = ProposerPool([ModelProposer(tiny_target(vocab=width, layers=1, seed=1), eos=frozenset())])
        assert_lossless(tiny_target(), proposer, lambda: order([3, 300, 5, 6], max_tokens=24))
