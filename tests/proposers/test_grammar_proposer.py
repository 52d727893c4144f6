"""What the grammar knows of the next tokens: what must come, and the few things of which one must."""

from __future__ import annotations

import re

import pytest
from test_pool import after, branches, context
from toy_vocabulary import TV

from agentspec.grammar.base import FREE, Cursor
from agentspec.grammar.schema import schema_guide
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.proposers.grammar import GrammarProposer

SIZE = {
    "type": "object",
    "properties": {
        "size": {"enum": ["S", "M", "XL", "XXL"]},
        "gift": {"type": "boolean"},
        "note": {"type": "string"},
        "count": {"type": "integer"},
    },
    "required": ["size"],
    "additionalProperties": False,
}


def propose(written: bytes, *, history: bytes = b"", budget: int = 64) -> list[bytes]:
    cursor = after(written, SIZE)
    (draft,) = GrammarProposer(TV).propose([context([*history, *written], cursor=cursor, budget=budget)])
    return branches(draft)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b"", [b'{"size": "M"', b'{"size": "S"', b'{"size": "X']),
        (b'{"size": "XL"', [b', "', b"}"]),
    ],
)
def test_what_is_forced_runs_on_into_each_of_the_few_choices(written: bytes, expected: list[bytes]) -> None:
    assert propose(written) == expected


def test_what_stood_there_before_in_the_conversation_comes_first() -> None:
    history = b'{"size": "S"} {"size": "M"} {"size": "M"}'
    first = [text.removeprefix(b'{"size": "')[:1] for text in propose(b"", history=history)]
    assert first[:2] == [b"M", b"S"]


def test_where_much_is_possible_or_nothing_is_held_there_is_no_guess() -> None:
    assert propose(b'{"size": "S", "count": ') == []
    assert propose(b'{"size": "S", "note": "x') == []
    assert propose(b'{"size": "S", "count": ', history=b'"count": 7') == [b"7"]  # only what was there before
    assert propose(b'{"size": "S", "note": "x', history=b'"x-ray') == []  # anything: other proposers know more of it
    assert not GrammarProposer(TV).propose([context([65], cursor=FREE)])[0].tokens


def test_a_text_is_split_as_the_tokenizer_would_and_as_it_was_written_before() -> None:
    # The longest token is `cel`, but this tokenizer would write `c` and `elsius`.
    split = lambda text: [270 if part == "elsius" else ord(part) for part in re.findall("elsius|.", text)]  # noqa: E731
    vocabulary = Vocabulary([*TV.tokens, b"cel", b"elsius"], special=TV.special, eos=TV.eos, encode=split)
    cursor: Cursor | None = schema_guide(vocabulary, {"enum": ["celsius", "kelvin"]}).start()
    cursor = cursor.advance(34) if cursor is not None else None
    assert cursor is not None
    firsts = []
    for history in ([65, 34], [65, 34, 269, 65, 34]):
        (draft,) = GrammarProposer(vocabulary).propose([context(history, cursor=cursor, budget=20)])
        paths = [tuple(draft.tokens[each] for each in draft.path(node)) for node in range(len(draft))]
        firsts.append([path[0] for path in paths if len(path) == 1])
        assert (99, 270) in paths
    assert firsts == [[107, 99], [269, 107, 99]]
