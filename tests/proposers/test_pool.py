"""One tree from several members."""

from __future__ import annotations

from collections.abc import Sequence

from toy_vocabulary import TV

from agentspec.config import SamplingParams
from agentspec.draft import EMPTY, ROOT, Draft
from agentspec.grammar.base import FREE, Cursor
from agentspec.grammar.schema import schema_guide
from agentspec.proposers.base import TRUSTING, Context, Off
from agentspec.proposers.grammar import GrammarProposer
from agentspec.proposers.pool import ProposerPool
from agentspec.segments import Segment
from agentspec.testing import ScriptedProposer

PERSON = {
    "type": "object",
    "properties": {"name": {"enum": ["Ann"]}, "age": {"type": "integer"}, "ill": {"type": "boolean"}},
    "required": ["name", "age", "ill"],
    "additionalProperties": False,
}


def context(tokens: Sequence[int], *, cursor: Cursor = FREE, budget: int = 8) -> Context:
    return Context(0, tokens, cursor, SamplingParams(), seed=0, budget=budget)


def branches(draft: Draft) -> list[bytes]:
    """The text of each path from the root to a leaf."""
    leaves = set(range(len(draft))) - set(draft.parents)
    return [b"".join(TV.tokens[draft.tokens[node]] for node in draft.path(leaf)) for leaf in sorted(leaves)]


def after(text: bytes, schema: dict[str, object] = PERSON) -> Cursor:
    cursor: Cursor | None = schema_guide(TV, schema).start()
    for token in text:
        assert cursor is not None
        cursor = cursor.advance(token)
    assert cursor is not None
    return cursor


class Scripted(Off):
    """Answers with a tree where the context ends with certain tokens."""

    def __init__(self, name: str, answers: dict[int, Draft]) -> None:
        self.name, self.sources, self.answers = name, (name,), answers  # type: ignore[misc]

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        return [self.answers.get(each.tokens[-1], EMPTY) for each in contexts]


def test_frame_value_and_choice_are_one_draft_and_every_node_keeps_its_source() -> None:
    value = Scripted("value", {264: Draft.chain(list(b"31,"), "value", 0.9)})  # 264 is `": `
    pool = ProposerPool([GrammarProposer(TV), value])
    (draft,) = pool.propose([context(b'{"name": "Ann"', cursor=after(b'{"name": "Ann"'), budget=64)])
    assert set(branches(draft)) == {b', "age": 31, "ill": true}', b', "age": 31, "ill": false}'}
    assert [draft.sources[node] for node in range(len(draft)) if draft.tokens[node] in list(b"31")] == ["value"] * 2


def test_doubtful_answers_stand_side_by_side_and_a_sure_one_alone() -> None:
    first = Scripted("first", {9: Draft.chain([1], "first", 0.5), 8: Draft.chain([4], "first", 0.9)})
    second = Scripted("second", {9: Draft.chain([2], "second", 0.4), 8: Draft.chain([5], "second", 0.9)})
    doubtful, sure = ProposerPool([first, second]).propose([context([9]), context([8])])
    assert (doubtful.tokens, doubtful.parents) == ((1, 2), (ROOT, ROOT))
    assert sure.tokens == (4,)


def test_the_draft_keeps_the_likeliest_nodes_of_the_budget() -> None:
    unsure = Scripted("unsure", {9: Draft.chain([1, 2, 3], "unsure", [0.6, 0.2, 0.9])})
    other = Scripted("other", {9: Draft.chain([4, 5], "other", [0.3, 0.9])})
    (draft,) = ProposerPool([unsure, other]).propose([context([9], budget=3)])
    assert (draft.tokens, draft.parents) == ((1, 4, 5), (ROOT, ROOT, 1))


def test_two_sources_of_one_token_are_one_node_of_the_surer() -> None:
    low, high = (Scripted(name, {9: Draft.chain([1], name, score)}) for name, score in (("low", 0.2), ("high", 0.7)))
    (draft,) = ProposerPool([low, high]).propose([context([9])])
    assert (draft.tokens, draft.sources, draft.scores) == ((1,), ("high",), (0.7,))


def test_drafts_stay_inside_the_grammar_and_the_budget() -> None:
    pool = ProposerPool([ScriptedProposer(list(b'{"nope')), GrammarProposer(TV)])
    (draft,) = pool.propose([context([65], cursor=after(b""), budget=5)])
    assert draft.tokens == (*b'{"n', *b"am")
    assert draft.sources == ("scripted",) * 3 + ("grammar",) * 2


def test_whom_the_judge_would_not_ask_is_not_asked() -> None:
    class Judge(type(TRUSTING)):  # type: ignore[misc]
        def asks(self, source: str, segment: Segment, reach: float, rows: int) -> bool:
            return source != "dear"

    dear, cheap = (Scripted(name, {9: Draft.chain([number], name)}) for name, number in (("dear", 1), ("cheap", 2)))
    assert ProposerPool([dear, cheap], judge=Judge()).propose([context([9])])[0].sources == ("cheap",)
