"""Numbers of a JSON Schema that the compiler would not hold to exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentspec.errors import GrammarError
from agentspec.grammar.schema_errors import refusal
from agentspec.grammar.schema_parts import parts, target

MOST_EXACT = 2**53
"""Beyond it the compiler rounds whole numbers."""

_ROUNDED = ("const", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_OPPOSITES = {
    "exclusiveMinimum": ("maximum", "exclusiveMaximum"),
    "exclusiveMaximum": ("minimum", "exclusiveMinimum"),
}


def check_numbers(schema: Mapping[str, Any]) -> None:
    """See that every number in the schema is held to as it stands.

    Raises:
        GrammarError: The message names the keyword and its path.
    """
    found = list(parts(schema))
    for path, part in found:
        for keyword in _ROUNDED:
            if any(abs(number) > MOST_EXACT for number in _numbers(part.get(keyword))):
                reason = f"numbers beyond {MOST_EXACT:,} would be rounded: leave it out, or use a text"
                raise refusal(keyword, path, reason)
    if any(part.keys() & _OPPOSITES.keys() for _, part in found):
        for path, part in found:
            _check_bounds(schema, part, path)


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _numbers(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def _check_bounds(schema: Mapping[str, Any], part: Mapping[str, Any], path: str) -> None:
    """See that no exclusive bound meets a fraction on the other side: the compiler would let the bound itself in."""
    together = list(_together(schema, part, set()))
    for keyword, others in _OPPOSITES.items():
        if any(each.get(keyword, False) is not False for each in together) and any(
            _fraction(each.get(other)) for each in together for other in others
        ):
            raise _beside_fraction(keyword, path, others[0])


def _beside_fraction(keyword: str, path: str, other: str) -> GrammarError:
    return refusal(keyword, path, f"with a fraction as {other} it can't be held to: make both whole, or it inclusive")


def _fraction(bound: object) -> bool:
    return isinstance(bound, float) and not bound.is_integer()


def _together(schema: Mapping[str, Any], part: object, seen: set[int]) -> Iterator[Mapping[str, Any]]:
    """The part and those that may hold for the same value."""
    if not isinstance(part, Mapping) or id(part) in seen:
        return
    seen.add(id(part))
    yield part
    for keyword in ("allOf", "anyOf", "oneOf"):
        for inner in part.get(keyword, ()):
            yield from _together(schema, inner, seen)
    if "$ref" in part:
        yield from _together(schema, target(schema, part["$ref"]), seen)
