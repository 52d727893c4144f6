"""JSON Schema keywords that the compiler does not know, said in those it does.

Each rewrite gives a schema whose documents are all valid under the original. Most say exactly the same; alternatives of
`oneOf` told apart by their required keys lose the documents that have the keys of two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agentspec.grammar.schema_parts import changed, parts, target

MOST_UNLIKE = 200
"""Characters of a text that may be excluded: the pattern for all others grows with the square of it."""

MOST_TOLD_APART = 64
"""Alternatives of `oneOf` that are told apart by their required keys, each from every other."""

_Part = dict[str, Any]
_TYPES = ("null", "boolean", "object", "array", "number", "string")
_DESCRIBES = frozenset({"$comment", "title", "description", "default", "examples", "deprecated"})
_COMBINES = ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "not", "dependentSchemas", "contains")
_ANY_TEXT = ("binary", "password", "path")
_MOST_CHOICES = 4
_MOST_COMPARED = 1_000_000
_YEAR = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_REAL_DATE = {"pattern": f"^(?:{_YEAR}-(?:0[13-9]-|1|02-[01]|02-2[0-8])|{_LEAP_YEAR}-02-29)"}


def rewritten(schema: Mapping[str, Any]) -> _Part:
    """The schema with what can be said in other words said so; the rest of it as it was, keys in their order.

    Where that would move what a reference points at, all of it as it was.
    """
    plain: _Part = changed(schema, _rewrite)
    references = {part["$ref"] for _, part in parts(plain) if isinstance(part.get("$ref"), str)}
    moved = any(target(plain, reference) is None and target(schema, reference) is not None for reference in references)
    return dict(schema) if moved else plain


def _rewrite(part: _Part) -> _Part:
    for rewrite in (_drop_idle, _close, _name_keys, _depend, _choose, _negate, _tell_apart, _real_dates):
        part = rewrite(part)
    return part


def _drop_idle(part: _Part) -> _Part:
    """Without the keywords that say nothing in this place."""
    idle = set()
    if "if" not in part or not part.keys() & {"then", "else"}:
        idle |= {"if", "then", "else"}
    if "contains" not in part:
        idle |= {"minContains", "maxContains"}
    few = isinstance(part.get("maxItems"), int) and part["maxItems"] <= 1
    if part.get("uniqueItems") is False or few:
        idle.add("uniqueItems")
    if part.get("format") in _ANY_TEXT:
        idle.add("format")
    return {keyword: value for keyword, value in part.items() if keyword not in idle}


def _close(part: _Part) -> _Part:
    """`unevaluated…: false` where nothing but the part itself evaluates, so that it means "additional"."""
    if any(keyword in part for keyword in _COMBINES):
        return part
    closed = dict(part)
    if part.get("unevaluatedProperties") is False:
        del closed["unevaluatedProperties"]
        closed.setdefault("additionalProperties", False)
    if part.get("unevaluatedItems") is False and not isinstance(part.get("items"), list):
        del closed["unevaluatedItems"]
        closed.setdefault("items", False)
    return closed


def _name_keys(part: _Part) -> _Part:
    """`propertyNames` of an object that names no keys itself: a pattern or a choice of names."""
    names = part.get("propertyNames")
    if not isinstance(names, Mapping) or part.keys() & {"properties", "patternProperties", "required"}:
        return part
    said = {keyword: value for keyword, value in names.items() if keyword not in _DESCRIBES}
    if said.pop("type", "string") != "string" or len(said) != 1:
        return part
    rest = {keyword: value for keyword, value in part.items() if keyword != "propertyNames"}
    value = rest.get("additionalProperties", True)
    if "pattern" in said:
        return {**rest, "patternProperties": {said["pattern"]: value}, "additionalProperties": False}
    if isinstance(said.get("enum"), list) and all(isinstance(name, str) for name in said["enum"]):
        return {**rest, "properties": dict.fromkeys(said["enum"], value), "additionalProperties": False}
    return part


def _depend(part: _Part) -> _Part:
    """Keys that ask for other keys: each is left out, or comes with what it asks for."""
    needs = [
        (keyword, name, {"required": need} if isinstance(need, list) else need)
        for keyword in ("dependentRequired", "dependentSchemas", "dependencies")
        if isinstance(part.get(keyword), Mapping)
        for name, need in part[keyword].items()
    ]
    if not needs or len(needs) > _MOST_CHOICES:
        return part
    rest = {keyword: value for keyword, value in part.items() if keyword not in {need[0] for need in needs}}
    return _with(rest, [{"anyOf": [_without([name]), {"allOf": [_has(name), need]}]} for _, name, need in needs])


def _choose(part: _Part) -> _Part:
    """`if`, `then`, `else` as two alternatives, where the opposite of the condition can be said."""
    if "if" not in part:
        return part
    otherwise = _opposite(part["if"])
    if otherwise is None:
        return part
    rest = {keyword: value for keyword, value in part.items() if keyword not in ("if", "then", "else")}
    yes = {"allOf": [part["if"], part.get("then", True)]}
    no = {"allOf": [otherwise, part.get("else", True)]}
    return _with(rest, [{"anyOf": [yes, no]}])


def _negate(part: _Part) -> _Part:
    """`not`, where the opposite can be said; from a list of constants it takes away."""
    if "not" not in part:
        return part
    rest = {keyword: value for keyword, value in part.items() if keyword != "not"}
    banned = _constants(part["not"])
    if banned is not None and isinstance(part.get("enum"), list):
        if len(banned) * len(part["enum"]) > _MOST_COMPARED:
            return part
        return {**rest, "enum": [value for value in part["enum"] if not _among(value, banned)]}
    opposite = _opposite(part["not"])
    return part if opposite is None else _with(rest, [opposite])


def _tell_apart(part: _Part) -> _Part:
    """`oneOf` whose alternatives each require a key of their own: one has it, the others are without."""
    choices = part.get("oneOf")
    if not isinstance(choices, list) or len(choices) > MOST_TOLD_APART:
        return part
    if not all(isinstance(choice, Mapping) for choice in choices):
        return part
    needs = [set(choice["required"]) if isinstance(choice.get("required"), list) else set() for choice in choices]
    told = []
    for index, choice in enumerate(choices):
        others = [sorted(need - needs[index]) for place, need in enumerate(needs) if place != index]
        if not all(others) or _constant_keys(choice):
            return part
        told.append({"allOf": [choice, _without([names[0] for names in others])], "type": "object"})
    rest = {keyword: value for keyword, value in part.items() if keyword != "oneOf"}
    return _with(rest, [{"anyOf": told}])


def _real_dates(part: _Part) -> _Part:
    """Dates with a year from 1 on, and 29 February in leap years only: the compiler's formats let others through."""
    if part.get("format") not in ("date", "date-time"):
        return part
    return _with(part, [_REAL_DATE]) if "pattern" in part else {**part, **_REAL_DATE}


def _opposite(schema: object) -> _Part | None:
    """A schema of all that `schema` refuses and of nothing else; None if it can't be said."""
    if not isinstance(schema, Mapping):
        return None
    said = {keyword: value for keyword, value in schema.items() if keyword not in _DESCRIBES}
    opposites = [_opposite_of(keyword, value, said) for keyword, value in said.items()]
    if not opposites or None in opposites:
        return None
    found = [opposite for opposite in opposites if opposite is not None]
    return found[0] if len(found) == 1 else {"anyOf": found}


def _opposite_of(keyword: str, value: Any, schema: Mapping[str, Any]) -> _Part | None:  # noqa: ANN401 (JSON)
    if keyword == "type":
        return _other_type([value] if isinstance(value, str) else value)
    if keyword == "required" and isinstance(value, list) and value:
        return {"anyOf": [{**_without([name]), "type": "object"} for name in value]}
    if keyword == "const" and (isinstance(value, str | bool) or value is None):
        return None if isinstance(value, str) and len(value) > MOST_UNLIKE else _other_than(value)
    if keyword == "anyOf" and isinstance(value, list):
        opposites = [_opposite(choice) for choice in value]
        return None if not opposites or None in opposites else {"allOf": opposites}
    if keyword == "properties" and isinstance(value, Mapping):
        others = {name: _opposite(part) for name, part in value.items() if part not in ({}, True)}
        if None in others.values():
            return None
        return {"anyOf": [{**_has(name), "properties": {name: other}} for name, other in others.items()]}
    return None


def _other_type(types: Sequence[str]) -> _Part | None:
    if "integer" in types and "number" not in types:
        return None
    return {"type": [name for name in _TYPES if name not in types]}


def _other_than(value: str | bool | None) -> _Part:
    if value is None:
        return {"type": [name for name in _TYPES if name != "null"]}
    if isinstance(value, bool):
        return {"anyOf": [{"type": [name for name in _TYPES if name != "boolean"]}, {"const": not value}]}
    return {"anyOf": [{"type": [name for name in _TYPES if name != "string"]}, {"type": "string", **_unlike(value)}]}


def _unlike(word: str) -> _Part:
    """Every text but one: it stops within the word, or leaves it at some letter, or goes on after it."""
    ways = [f"{re.escape(word[:place])}(?:[^{re.escape(word[place])}](?s:.*))?" for place in range(len(word))]
    return {"pattern": f"^(?:{'|'.join([*ways, re.escape(word) + '(?s:.+)'])})$"}


def _constants(schema: object) -> list[Any] | None:
    if not isinstance(schema, Mapping) or schema.keys() - _DESCRIBES not in ({"const"}, {"enum"}):
        return None
    return [schema["const"]] if "const" in schema else list(schema["enum"])


def _among(value: object, values: Sequence[object]) -> bool:
    return any(value == other and isinstance(value, bool) == isinstance(other, bool) for other in values)


def _constant_keys(choice: Mapping[str, Any]) -> bool:
    """Whether a required key's constants may tell the alternative apart already, with no document lost."""
    properties, required = choice.get("properties"), choice.get("required")
    declared = properties if isinstance(properties, Mapping) else {}
    return any(
        isinstance(declared.get(name), Mapping) and declared[name].keys() & {"const", "enum"}
        for name in (required if isinstance(required, list) else ())
    )


def _without(names: Sequence[str]) -> _Part:
    return {"properties": dict.fromkeys(names, False)}


def _has(name: str) -> _Part:
    return {"type": "object", "required": [name]}


def _with(part: _Part, more: Sequence[Mapping[str, Any]]) -> _Part:
    return {**part, "allOf": [*part.get("allOf", ()), *more]}
