import pytest
from toy_vocabulary import TV

from agentspec.config import SamplingParams
from agentspec.errors import ConfigError
from agentspec.grammar.base import FREE, Cursor
from agentspec.grammar.schema import schema_guide
from agentspec.models.toy import tiny_target
from agentspec.proposers.base import Context, Off
from agentspec.proposers.grammar import GrammarProposer
from agentspec.proposers.model import ModelProposer
from agentspec.proposers.ngram import NgramProposer
from agentspec.proposers.pool import ProposerPool
from agentspec.proposers.registry import build_proposer


def context(tokens: list[int], *, cursor: Cursor = FREE, budget: int = 8, rate: float = 0.0) -> Context:
    return Context(0, tokens, cursor, SamplingParams(), seed=0, budget=budget, rate=rate)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([1, 2, 3, 4, 1, 2], (3, 4, 1)),
        ([1, 2, 3, 9, 1, 2, 5, 9, 1, 2], (5, 9, 1)),  # of two matches alike, the latest
        ([7, 1, 2, 3, 9, 8, 1, 2, 5, 9, 7, 1, 2], (3, 9, 8)),  # but a longer match wins over a later one
        ([4, 4, 4], (4, 4, 4)),  # a repetition goes on past what was written
        ([1, 2, 3, 2], ()),  # one token alone is no match
        ([1], ()),
    ],
)
def test_prompt_lookup_copies_what_followed_the_longest_latest_match(
    tokens: list[int], expected: tuple[int, ...]
) -> None:
    assert NgramProposer().propose([context(tokens, budget=3)])[0].tokens == expected


def test_prompt_lookup_is_surer_of_a_longer_match() -> None:
    short = NgramProposer().propose([context([1, 2, 3, 9, 1, 2])])[0]
    long = NgramProposer().propose([context([5, 6, 1, 2, 3, 9, 5, 6, 1, 2])])[0]
    assert short.scores[0] < long.scores[0] < 1
    assert list(short.scores) == sorted(short.scores)


def test_prompt_lookup_finds_what_was_written_since_the_last_round() -> None:
    proposer = NgramProposer()
    tokens = [1, 2, 3]
    assert not proposer.propose([context(tokens)])[0].tokens
    assert proposer.propose([context([*tokens, 1, 2])])[0].tokens[:1] == (3,)


PERSON = {
    "type": "object",
    "properties": {"name": {"enum": ["Ann"]}, "age": {"type": "integer"}, "town": {"type": "string"}},
    "required": ["name", "age", "town"],
    "additionalProperties": False,
}


def test_the_grammar_drafts_what_is_forced_and_no_more() -> None:
    cursor = schema_guide(TV, PERSON).start()
    draft = GrammarProposer(TV).propose([context([65], cursor=cursor, budget=64)])[0]
    assert b"".join(TV.tokens[token] for token in draft.tokens) == b'{"name": "Ann", "age": '


def test_a_draft_model_stops_where_the_grammar_goes_on_alone() -> None:
    cursor = schema_guide(TV, PERSON).start()
    assert not ModelProposer(tiny_target(), eos=frozenset()).propose([context([65], cursor=cursor)])[0].tokens


def test_a_draft_model_stops_where_a_guess_costs_more_than_it_brings() -> None:
    model = ModelProposer(tiny_target(), eos=frozenset())
    assert len(model.propose([context([65, 66])])[0]) == 8
    # At a billion tokens a second no guess is worth a forward of the draft model, but for the one that was asked for.
    assert len(model.propose([context([65, 66], rate=1e9)])[0]) == 1


def test_several_requests_are_drafted_for_in_one_batch_as_they_are_alone() -> None:
    model = ModelProposer(tiny_target(), eos=frozenset())
    contexts = [
        Context(index, [index + 1, 5, 9], FREE, SamplingParams(), seed=0, budget=index + 2) for index in range(3)
    ]
    together = model.propose(contexts)
    alone = [ModelProposer(tiny_target(), eos=frozenset()).propose([each])[0] for each in contexts]
    assert [draft.tokens for draft in together] == [draft.tokens for draft in alone]


def test_proposers_by_name() -> None:
    assert isinstance(build_proposer([], vocabulary=TV, draft_model=None), Off)
    assert isinstance(build_proposer(None, vocabulary=TV, draft_model=None), ProposerPool)
    for names, words in ((["ngarm"], "no proposer is called 'ngarm'"), (["model"], "needs a draft model")):
        with pytest.raises(ConfigError, match=words):
            build_proposer(names, vocabulary=TV, draft_model=None)
