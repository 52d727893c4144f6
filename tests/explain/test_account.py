"""What is told of rounds that a test makes up: a token is the code of its letter."""

import re

from agentspec.draft import Draft
from agentspec.explain.account import TARGET, explain
from agentspec.explain.page import page
from agentspec.explain.terminal import coloured, listed
from agentspec.segments import Segment
from agentspec.trace import StepRecord

KEY, STRING = Segment.JSON_KEY, Segment.STRING_VALUE


def spell(token: int) -> bytes:
    return bytes([token])


def record(draft: Draft, segments: tuple[Segment, ...], path: tuple[int, ...], text: str, began: Segment) -> StepRecord:
    return StepRecord(0, began, draft, segments, path, tuple(text.encode("latin-1")), 1, 1 + len(draft), 0.0, 1.0, 1.0)


def tree() -> StepRecord:
    """`a` with the children `b` and `c`, `c` with `d`; a second first-level node `x`: `ac` is accepted, then `!`."""
    draft = Draft(
        tuple(b"abcxd"),
        (-1, 0, 0, -1, 2),
        (0.9, 0.5, 0.4, 0.1, 0.8),
        ("grammar", "grammar", "suffix", "suffix", "suffix"),
    )
    return record(draft, (KEY, STRING, STRING, KEY, STRING), (0, 2), "ac!", KEY)


def plain(text: str) -> StepRecord:
    return record(Draft(), (), (), text, STRING)


def test_each_token_has_its_source_and_each_wrong_branch_its_place() -> None:
    account = explain([tree(), plain(".")], spell)

    assert [(piece.text, piece.source, piece.round, piece.segment) for piece in account.pieces] == [
        ("a", "grammar", 1, KEY),
        ("c", "suffix", 1, STRING),
        ("!", TARGET, 1, STRING),
        (".", TARGET, 2, STRING),
    ]
    # x stood where a came, b where c came, d where ! came.
    assert [(branch.place, branch.text, branch.source) for branch in account.rejected] == [
        (0, "x", "suffix"),
        (1, "b", "grammar"),
        (2, "d", "suffix"),
    ]
    assert account.segments[STRING].wire == {
        "tokens": 3,
        "forwards": 1,
        "drafted": 3,
        "accepted": 1,
        "rejected": 2,
        "by_source": {
            "grammar": {"drafted": 1, "accepted": 0, "rate": 0.0},
            "suffix": {"drafted": 2, "accepted": 1, "rate": 0.5},
        },
    }
    assert (account.total.tokens, account.total.forwards, account.total.drafted.total()) == (4, 2, 5)


def test_an_answer_that_ends_inside_a_draft_has_nothing_rejected_behind_its_end() -> None:
    draft = Draft.chain(tuple(b"abcd"), "model")
    account = explain([record(draft, (STRING,) * 4, (0, 1), "ab", STRING)], spell)

    assert [piece.source for piece in account.pieces] == ["model", "model"]
    assert account.rejected == ()
    assert account.total.wire["rejected"] == 2


def test_a_character_in_several_tokens_is_one_and_a_wrong_branch_is_cut() -> None:
    euro = record(Draft.chain((0xE2, 0x82), "ngram"), (STRING,) * 2, (0, 1), "\xe2\x82\xac", STRING)
    long = record(Draft.chain([ord("z")] * 40, "ngram"), (STRING,) * 40, (), "y", STRING)
    account = explain([euro, long], spell)

    assert [piece.text for piece in account.pieces] == ["", "", "€", "y"]
    assert [(len(branch.text), branch.nodes) for branch in account.rejected] == [(24, 40)]


def test_without_colours_each_run_names_its_round_and_source() -> None:
    account = explain([tree(), plain("\n"), plain("\x1b")], spell)

    assert list(listed(account, rejected=False)) == [
        ("1", "grammar", "a"),
        ("1", "suffix", "c"),
        ("1", "target", "!"),
        ("2", "target", "⏎"),
        ("3", "target", "?"),
    ]
    assert list(listed(account, rejected=True))[:4] == [
        ("1", "(suffix)", "x"),
        ("1", "grammar", "a"),
        ("1", "(grammar)", "b"),
        ("1", "suffix", "c"),
    ]
    text = coloured(account, rejected=True)
    assert text.plain == "xabcd!\n?"
    assert {str(span.style) for span in text.spans} >= {"bold blue", "dim strike", "underline yellow"}


def test_the_page_needs_nothing_else_and_cant_be_broken_out_of() -> None:
    account = explain([plain("<"), plain("b"), plain(">"), plain('"'), tree()], spell)
    shown = page(account, title="</title><script>", facts="8 tokens", rejected=True)

    assert "&lt;</span>" in shown
    assert "<script" not in shown
    assert not any(word in shown for word in ("http:", "https:", "src=", "url(", "@import"))
    assert 'data-tip="round 5 · suffix · score 0.40 · string value">c</span>' in shown
    assert 'data-tip="round 5 · grammar · score 0.50 · 1 token rejected">b</del>' in shown
    assert 'id="wrong" checked' in shown
    assert 'id="wrong">' in page(account, title="t", facts="", rejected=False)
    assert "prefers-color-scheme: dark" in shown


def test_the_page_spells_what_a_browser_or_an_editor_would_obey() -> None:
    told = ["\x1b[2J", "\u202eevil", "\u2066", "\x00", "\ud800"]
    account = explain([plain("\x1b"), plain(".")], spell)
    shown = page(account, title="".join(told), facts="\u061c", rejected=False)

    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u202e\u2066\ud800]", shown)
    assert r"<h1>\x1b[2J\u202eevil\u2066\x00\ud800</h1>" in shown
    assert r"\x1b</span>" in shown
