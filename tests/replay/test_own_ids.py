"""Recorded ids are believed where they say what was recorded, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from toy_vocabulary import EOS, IM_END, TV

from agentspec.replay.own_ids import own_ids
from agentspec.replay.turns import Turn

CUT = {"content": "", "invalid_tool_calls": [{"arguments": "{"}]}


def believed(answer: dict[str, Any], tokens: tuple[int, ...], **given: Any) -> bool:
    said = {"role": "assistant", **answer}
    turn = Turn(
        "t", 1, ({"role": "user", "content": "x"},), (), "f", 1, called=False, answer=said, tokens=tokens, **given
    )
    return own_ids(turn, TV.spelled, TV.text) == tokens


@pytest.mark.parametrize(
    ("answer", "tokens", "given", "own"),
    [
        ({"content": "Rome"}, (*b"Rome", EOS), {}, True),
        ({"content": "Rome"}, (*b"Oslo", EOS), {}, False),
        ({"content": "ab"}, (*b"a", IM_END, *b"b", EOS), {}, True),  # control tokens are hidden in a content
        ({"content": "a<|im_end|>b"}, (*b"a", IM_END, *b"b"), {}, True),  # or shown
        ({"content": "x"}, (9999,), {}, False),
        (CUT, tuple(b"anything"), {}, False),  # there is nothing to compare
        (CUT, tuple(b"<call>{"), {"written": "<call>{"}, True),
        (CUT, tuple(b"anything"), {"written": "<call>{"}, False),
        ({"content": ""}, tuple(b"anything"), {"written": ""}, False),
        ({"content": ""}, (EOS,), {"written": ""}, True),
        ({"content": "1, "}, tuple(b"1, 2."), {"written": "1, ", "params": {"stop": ["2"]}}, True),
        ({"content": "1, "}, tuple(b"1, 2."), {"written": "1, ", "params": {"stop": ["3"]}}, False),
        ({"content": "\ufffd"}, tuple("é".encode()[:1]), {"written": "\ufffd"}, True),  # cut within a character
    ],
)
def test_ids_must_say_what_was_recorded(answer, tokens, given, own) -> None:
    assert believed(answer, tokens, **given) is own
