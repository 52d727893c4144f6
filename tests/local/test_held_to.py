"""What an answer is held to: one of the options, with its white space."""

import json
from typing import Any

import pytest
from engine_doubles import byte_asker
from pydantic import BaseModel

from agentspec import SamplingParams
from agentspec.errors import ConfigError, GrammarError
from agentspec.local.ask import Ask

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Count(BaseModel):
    n: int


def written(text: str, **options: Any) -> bool:
    """Whether an answer asked for with these options may be `text`."""
    (order, *_), _ = byte_asker().read(Ask("?", SamplingParams(), options))  # type: ignore[arg-type, typeddict-item]
    cursor = order.guide.start()
    for token in text.encode():
        if cursor is not None:
            cursor = cursor.advance(token)
    return cursor is not None and cursor.accepting


@pytest.mark.parametrize(
    "held_to", [{"output_type": Count}, {"output_type": json.dumps(SCHEMA)}, {"json_schema": SCHEMA}]
)
def test_a_document_has_fixed_white_space_unless_asked(held_to: dict[str, Any]) -> None:
    assert written('{"n": 1}', **held_to)
    assert not written('{\n  "n": 1\n}', **held_to)
    assert written('{\n  "n": 1\n}', **held_to, json_whitespace="bounded")


def test_a_type_without_fields_is_text() -> None:
    assert written("12", output_type=int)
    assert not written("a", output_type=int)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"output_type": int, "regex": "a"}, ConfigError, "one thing, not to output_type and regex"),
        ({"json_whitespace": "bounded"}, ConfigError, "json_whitespace goes with json_schema or output_type"),
        ({"json_schema": SCHEMA, "json_whitespace": "free"}, ConfigError, "must be fixed or bounded, not 'free'"),
        ({"output_type": set}, GrammarError, "output_type <class 'set'> can't be enforced"),
    ],
)
def test_what_cannot_be_asked_is_one_line(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        written("", **options)
