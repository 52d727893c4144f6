"""The answers in a line of our own recording, round by round, checked whole before anything is run again.

Source of the format: docs/recording.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentspec.draft import Draft
from agentspec.errors import TraceError
from agentspec.replay.readers.base import objects


@dataclass(frozen=True, slots=True)
class Round:
    """A forward that wrote tokens of an answer.

    Attributes:
        draft: What was verified.
        tokens: That it wrote, at least one.
    """

    draft: Draft
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request was answered.

    Attributes:
        tokens: At least one.
        rounds: Whose tokens, one after the other, are the answer's.
    """

    tokens: tuple[int, ...]
    rounds: tuple[Round, ...]


def answers_at(row: Mapping[str, Any], vocab_size: int) -> list[Answer]:
    """The answers of a line.

    Args:
        row: The line.
        vocab_size: Of the model that is to write them again.

    Raises:
        TraceError: There are none, or one is broken; the message says where, and holds nothing of what is recorded.
    """
    given = objects(row, "answers")
    if not given:
        raise TraceError("answers is missing or empty")
    return [_answer(each, f"answers[{number}]", vocab_size) for number, each in enumerate(given)]


def _answer(row: Mapping[str, Any], place: str, vocab_size: int) -> Answer:
    tokens = _written(row, place, vocab_size)
    try:
        given = objects(row, "rounds")
    except TraceError as error:
        raise TraceError(f"{place}.{error}") from error
    if not given:
        raise TraceError(f"{place}.rounds is missing or empty")
    rounds = tuple(_round(each, f"{place}.rounds[{number}]", vocab_size) for number, each in enumerate(given))
    if tuple(token for each in rounds for token in each.tokens) != tokens:
        raise TraceError(f"{place}.tokens is other than what its rounds wrote")
    return Answer(tokens, rounds)


def _round(row: Mapping[str, Any], place: str, vocab_size: int) -> Round:
    draft = row.get("draft")
    if not isinstance(draft, dict):
        raise TraceError(f"{place}.draft is no object")
    return Round(_draft(draft, f"{place}.draft", vocab_size), _written(row, place, vocab_size))


def _draft(row: Mapping[str, Any], place: str, vocab_size: int) -> Draft:
    tokens = _ids(row, place, vocab_size)
    parents = _items(row, "parents", place, "indexes", lambda item: type(item) is int)
    scores = _items(row, "scores", place, "finite numbers", _finite)
    sources = _items(row, "sources", place, "names", lambda item: isinstance(item, str))
    try:
        return Draft(tokens, parents, scores, sources)
    except ValueError as error:
        raise TraceError(f"{place} is no tree: {str(error).partition(':')[0]}") from error


def _written(row: Mapping[str, Any], place: str, vocab_size: int) -> tuple[int, ...]:
    if row.get("tokens", []) == []:
        raise TraceError(f"{place}.tokens is missing or empty")
    return _ids(row, place, vocab_size)


def _ids(row: Mapping[str, Any], place: str, vocab_size: int) -> tuple[int, ...]:
    return _items(row, "tokens", place, "this model's token ids", lambda item: _id(item, vocab_size))


def _items(row: Mapping[str, Any], key: str, place: str, what: str, fits: Callable[[Any], bool]) -> tuple[Any, ...]:
    value = row.get(key)
    if not isinstance(value, list) or not all(map(fits, value)):
        raise TraceError(f"{place}.{key} is no list of {what}")
    return tuple(value)


def _id(item: object, vocab_size: int) -> bool:
    return type(item) is int and 0 <= item < vocab_size


def _finite(item: object) -> bool:
    try:
        return type(item) in (int, float) and math.isfinite(item)  # type: ignore[arg-type]  # a number by now
    except OverflowError:
        return False
