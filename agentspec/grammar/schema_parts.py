"""Which keywords of a JSON Schema hold schemas of their own, and the walk over all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

_ONE_SCHEMA = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_SCHEMA_LISTS = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_SCHEMA_MAPS = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)


def parts(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every schema inside `schema`, itself first, with its JSON path; what only looks like one (`const`) is not.

    What a reference points at counts, wherever it stands.
    """
    seen: set[int] = set()
    waiting: list[tuple[str, object]] = [("$", schema)]
    while waiting:
        for path, part in _inside(*waiting.pop(0), seen):
            yield path, part
            reference = part.get("$ref")
            if isinstance(reference, str):
                waiting.append((f"$.{reference[2:].replace('/', '.')}", target(schema, reference)))


def _inside(path: str, schema: object, seen: set[int]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(schema, Mapping) or id(schema) in seen:
        return
    seen.add(id(schema))
    yield path, schema
    for keyword, value in schema.items():
        if keyword in _SCHEMA_MAPS and isinstance(value, Mapping):
            for name, part in value.items():
                yield from _inside(f"{path}.{keyword}.{name}", part, seen)
        elif keyword in _SCHEMA_LISTS and isinstance(value, list):
            for index, part in enumerate(value):
                yield from _inside(f"{path}.{keyword}[{index}]", part, seen)
        elif keyword in _ONE_SCHEMA:
            yield from _inside(f"{path}.{keyword}", value, seen)


def changed(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:  # noqa: ANN401 (JSON)
    """The schema with `change` made to each of its parts, inner ones first; keys keep their order."""
    if not isinstance(schema, Mapping):
        return schema
    return change({keyword: _changed(keyword, value, change) for keyword, value in schema.items()})


def _changed(keyword: str, value: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:  # noqa: ANN401
    if keyword in _SCHEMA_MAPS and isinstance(value, Mapping):
        return {name: changed(part, change) for name, part in value.items()}
    if keyword in _SCHEMA_LISTS and isinstance(value, list):
        return [changed(part, change) for part in value]
    return changed(value, change) if keyword in _ONE_SCHEMA else value


def target(root: Mapping[str, Any], reference: str) -> object:
    """What a reference within the document names; None, which always ends, for any other: the compiler judges it."""
    if not reference.startswith("#") or (reference != "#" and not reference.startswith("#/")):
        return None
    place: object = root
    for step in reference[2:].split("/") if reference != "#" else ():
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, list) and name.isascii() and name.isdigit() and int(name) < len(place):
            place = place[int(name)]
        elif isinstance(place, Mapping):
            place = place.get(name)
        else:
            return None
    return place
