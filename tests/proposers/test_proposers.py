from collections.abc import Sequence

import pytest
from toy_vocabulary import TV

from agentspec.config import EngineConfig, SamplingParams
from agentspec.errors import ConfigError
from agentspec.grammar.base import FREE, Cursor
from agentspec.grammar.schema import schema_guide
from agentspec.models.base import Output, Row
from agentspec.models.toy import tiny_target
from agentspec.proposers.base import Context, Off
from agentspec.proposers.grammar import GrammarProposer
from agentspec.proposers.model import ModelProposer
from agentspec.proposers.pool import ProposerPool
from agentspec.proposers.registry import build_proposer


def context(tokens: list[int], *, cursor: Cursor = FREE, budget: int = 8, rate: float = 0.0) -> Context:
    return Context(0, tokens, cursor, SamplingParams(), seed=0, budget=budget, rate=rate)


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


def test_the_engines_limits_are_the_draft_models_too() -> None:
    widths, model = list[int](), tiny_target()
    config = EngineConfig(prefill_chunk=8, prefix_cache_tokens=0)
    forward = model.forward

    def counting(rows: Sequence[Row]) -> Output:
        widths.extend(row.width for row in rows)
        return forward(rows)

    model.forward = counting  # type: ignore[method-assign]
    proposer = build_proposer(["model"], vocabulary=TV, draft_model=model, config=config)
    for request, first in enumerate((0, 20, 0)):
        tokens = list(range(first, first + 20))
        proposer.propose([Context(request, tokens, FREE, SamplingParams(), seed=0, budget=1)])
        proposer.finish(request, [1])
    assert widths == [8, 8, 4, 1] * 3  # what the first request left is gone when the third one asks for it


def test_proposers_by_name() -> None:
    assert isinstance(build_proposer([], vocabulary=TV, draft_model=None), Off)
    assert isinstance(build_proposer(None, vocabulary=TV, draft_model=None), ProposerPool)
    for names, words in ((["sufix"], "no proposer is called 'sufix'"), (["model"], "needs a draft model")):
        with pytest.raises(ConfigError, match=words):
            build_proposer(names, vocabulary=TV, draft_model=None)
