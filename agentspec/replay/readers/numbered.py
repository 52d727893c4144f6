"""Lists that tracers flatten into attributes, with numbers in their names: `messages.0.role`, `messages.0.name`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LONGEST = 100_000  # of a list: a number in a name is no reason to make a longer one


def numbered(attributes: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of a flattened list, in order; those that are already a list as they are.

    Args:
        attributes: Of a span.
        name: What the names begin with, without the dot.
    """
    whole = attributes.get(name)
    if isinstance(whole, list):
        return [_nested(item) for item in whole if isinstance(item, dict)]
    tree: dict[str, Any] = {}
    for key, value in attributes.items():
        if key.startswith(f"{name}."):
            _place(tree, key[len(name) + 1 :].split("."), value)
    found = _lists(tree)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _nested(item: Mapping[str, Any]) -> dict[str, Any]:
    """An object whose names have dots as nested objects."""
    tree: dict[str, Any] = {}
    for key, value in item.items():
        inner = (
            [_nested(each) if isinstance(each, dict) else each for each in value] if isinstance(value, list) else value
        )
        _place(tree, str(key).split("."), _nested(inner) if isinstance(inner, dict) else inner)
    found = _lists(tree)
    return found if isinstance(found, dict) else {}


def _place(tree: dict[str, Any], path: list[str], value: object) -> None:
    for name in path[:-1]:
        inner = tree.setdefault(name, {})
        if not isinstance(inner, dict):
            return  # a name is both a value and the beginning of others
        tree = inner
    tree.setdefault(path[-1], value)


def _lists(tree: Any) -> Any:  # noqa: ANN401
    """With objects whose names are all numbers as lists."""
    if not isinstance(tree, dict):
        return tree
    inner = {name: _lists(each) for name, each in tree.items()}
    if inner and all(name.isdecimal() and int(name) < _LONGEST for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner
