import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentspec.draft import EMPTY, ROOT, Draft
from agentspec.verify import verify


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    """Any tree of up to eight nodes over the tokens 0..3."""
    parents: list[int] = []
    tokens: list[int] = []
    for _ in range(draw(st.integers(0, 8))):
        parent, token = draw(st.integers(ROOT, len(tokens) - 1)), draw(st.integers(0, 3))
        if (parent, token) not in zip(parents, tokens, strict=True):
            parents.append(parent)
            tokens.append(token)
    size = len(tokens)
    return Draft(tuple(tokens), tuple(parents), (0.5,) * size, ("test",) * size)


TREE = Draft((5, 6, 7, 6), (ROOT, ROOT, 0, 0), (0.5, 0.25, 0.5, 0.5), ("a", "b", "a", "b"))


def test_a_tree_knows_its_paths_and_chances() -> None:
    assert TREE.path(3) == (0, 3)
    assert TREE.depths() == (0, 0, 1, 1)
    assert TREE.reach() == (0.5, 0.25, 0.25, 0.25)
    assert TREE.child(ROOT, 6) == 1  # and not 3, which spells the same token one level down
    assert TREE.child(0, 6) == 3
    assert not TREE.is_chain


def test_cutting_a_node_cuts_what_hangs_below_it() -> None:
    # Node 2 stays wanted, but its parent is gone: keeping it would hang it below another node.
    cut = TREE.cut([1, 2, 3])
    assert (cut.tokens, cut.parents, cut.sources) == ((6,), (ROOT,), ("b",))


@pytest.mark.parametrize(("tokens", "parents"), [((1, 2), (ROOT, 1)), ((1, 1), (ROOT, ROOT)), ((1, 2), (ROOT,))])
def test_an_impossible_tree_is_refused(tokens: tuple[int, ...], parents: tuple[int, ...]) -> None:
    size = len(tokens)
    with pytest.raises(ValueError, match="draft"):
        Draft(tokens, parents, (0.5,) * size, ("a",) * size)


@given(drafts(), st.sets(st.integers(0, 7)))
def test_law_6_a_cut_keeps_every_path(draft: Draft, keep: set[int]) -> None:
    def texts(tree: Draft) -> set[tuple[int, ...]]:
        return {tuple(tree.tokens[each] for each in tree.path(node)) for node in range(len(tree))}

    whole = {
        tuple(draft.tokens[each] for each in draft.path(node))
        for node in range(len(draft))
        if set(draft.path(node)) <= keep
    }
    assert texts(draft.cut(keep)) == whole
    assert len(draft.cut(keep)) <= len(keep)


@given(drafts(), st.lists(st.integers(0, 3), min_size=9, max_size=9))
def test_verify_keeps_exactly_what_plain_decoding_would_write(draft: Draft, picks: list[int]) -> None:
    outcome = verify(draft, picks)
    node, written = ROOT, []
    while True:  # plain decoding: take the pick, see whether the draft happens to hold the place after it
        written.append(picks[node + 1])
        following = [n for n in range(len(draft)) if draft.parents[n] == node and draft.tokens[n] == written[-1]]
        if not following:
            break
        node = following[0]
    assert [*(draft.tokens[n] for n in outcome.path), outcome.bonus] == written


def test_verify_of_no_draft_is_plain_decoding() -> None:
    assert verify(EMPTY, [42]).bonus == 42
