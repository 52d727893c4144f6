"""How large a JSON Schema may be, so that compiling it takes about a second at worst; and whether it can be met at all.

Measured on one CPU core with a vocabulary of 152,000 tokens: a `multipleOf` of seven digits took 94 s, 3,000 optional
properties 0.5 s and were then refused in the middle of the answer, 200 patterns for property names 1 s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from agentspec.errors import GrammarError
from agentspec.grammar.regex_size import MOST_EXPANDED, expanded
from agentspec.grammar.schema_errors import THE_SCHEMA, refusal
from agentspec.grammar.schema_parts import parts, target
from agentspec.grammar.schema_shape import check_shape

MOST_BYTES = 512 * 1024
"""Of the schema as JSON text."""

MOST_DEPTH = 100
"""Objects and lists of the schema's own text inside each other."""

_MOST_SIZE = 200_000
"""Values, and a quarter of their text: what fits in `MOST_BYTES` has fewer, unless parts are shared."""

_GROWS = 4
_END = object()
_MOST_OPTIONAL = 450
_MOST_PATTERNS = 64
_MOST_MULTIPLE = 10_000
_NOT_ALL = frozenset({"array", "object"})


def check_depth(schema: object) -> None:
    """See that the schema can be walked, and isn't too large to be.

    Raises:
        GrammarError: It is nested too deep, holds itself, or its parts are shared so often that it explodes.
    """
    _walk(schema, MOST_DEPTH, _MOST_SIZE)


def check_grown(schema: object) -> None:
    """See that saying a schema otherwise has not made it explode.

    Raises:
        GrammarError: It has.
    """
    _walk(schema, _GROWS * MOST_DEPTH, _GROWS * _MOST_SIZE)


def _walk(schema: object, deepest: int, largest: int) -> None:
    size, path, waiting = 0, [schema], [iter(_inner(schema))]
    while waiting:
        value = next(waiting[-1], _END)
        if value is _END:
            path.pop()
            waiting.pop()
            continue
        if len(path) >= deepest:
            raise GrammarError(f"{THE_SCHEMA}is nested more than {deepest} deep: use $defs and $ref for its parts")
        size += _size(value)
        if size > largest:
            raise GrammarError(f"{THE_SCHEMA}is too large once written out: use $defs and $ref for what repeats")
        if isinstance(value, Mapping | list | tuple):
            if any(value is holder for holder in path):
                raise GrammarError(f"{THE_SCHEMA}contains itself: use $ref")
            path.append(value)
            waiting.append(iter(_inner(value)))


def _size(value: object) -> int:
    texts = value if isinstance(value, Mapping) else (value,)
    return 1 + sum(len(text) for text in texts if isinstance(text, str)) // 4


def _inner(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def check_limits(schema: Mapping[str, Any]) -> None:
    """See that it is well formed, that nothing in it makes its grammar explode, and that some document can be finished.

    Raises:
        GrammarError: The message names the keyword and its path.
    """
    check_shape(schema)
    for path, part in parts(schema):
        _check_part(part, path)
    if not _Ends(schema).ends(schema):
        raise refusal("$ref", "$", "every document would have to hold itself, so none ever ends: make a part optional")


def _check_part(part: Mapping[str, Any], path: str) -> None:
    properties, required, patterns = (part.get(key) for key in ("properties", "required", "patternProperties"))
    must = set(required) if isinstance(required, list) else set()
    optional = sum(name not in must for name in properties) if isinstance(properties, Mapping) else 0
    if optional > _MOST_OPTIONAL:
        raise refusal("properties", path, f"{optional} of them are optional, at most {_MOST_OPTIONAL} may be")
    if isinstance(patterns, Mapping) and len(patterns) > _MOST_PATTERNS:
        raise refusal("patternProperties", path, f"there are {len(patterns)} patterns, at most {_MOST_PATTERNS}")
    for keyword, pattern in _patterns(part):
        if (size := expanded(pattern)) > MOST_EXPANDED:
            raise refusal(keyword, path, f"with its repeats written out it is {size:,} long, at most {MOST_EXPANDED:,}")
    multiple, least = part.get("multipleOf"), part.get("minProperties")
    if isinstance(multiple, int | float) and _digits(multiple) > _MOST_MULTIPLE:
        raise refusal("multipleOf", path, f"{multiple} has too many digits: at most {_MOST_MULTIPLE} without its zeros")
    if isinstance(least, int) and least > len(must) + 1 and part.get("additionalProperties") is not False:
        raise refusal("minProperties", path, "two keys that aren't named may be the same: require them by name")


def _patterns(part: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if isinstance(part.get("pattern"), str):
        yield "pattern", part["pattern"]
    if isinstance(part.get("patternProperties"), Mapping):
        yield from (("patternProperties", pattern) for pattern in part["patternProperties"])


def _digits(number: float) -> int:
    """The number without its decimal point and the zeros around it: 0.025 and 2500 are both 25."""
    return int("".join(map(str, Decimal(str(number)).as_tuple().digits)).strip("0") or 0)


class _Ends:
    """Which schemas have a document of finite length, as far as references and required parts decide it."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema
        self._ending: set[str] = set()
        references = {part["$ref"] for _, part in parts(schema) if isinstance(part.get("$ref"), str)}
        targets = {reference: target(schema, reference) for reference in references}
        while found := {key for key in targets.keys() - self._ending if self.ends(targets[key])}:
            self._ending |= found

    def ends(self, schema: object) -> bool:
        """Whether it has, given the references known to."""
        if not isinstance(schema, Mapping):
            return True
        if isinstance(schema.get("$ref"), str) and schema["$ref"] not in self._ending:
            return False
        if not all(map(self.ends, _list(schema, "allOf"))):
            return False
        for choices in (_list(schema, "anyOf"), _list(schema, "oneOf")):
            if choices and not any(map(self.ends, choices)):
                return False
        return self._ends_by_type(schema)

    def _ends_by_type(self, schema: Mapping[str, Any]) -> bool:
        types = schema.get("type")
        listed = {types} if isinstance(types, str) else set(types) if isinstance(types, list) else set()
        if not listed or listed - _NOT_ALL:
            return True
        return ("object" in listed and self._object_ends(schema)) or ("array" in listed and self._array_ends(schema))

    def _object_ends(self, schema: Mapping[str, Any]) -> bool:
        properties = schema.get("properties")
        declared = properties if isinstance(properties, Mapping) else {}
        return all(self.ends(declared.get(name)) for name in _list(schema, "required"))

    def _array_ends(self, schema: Mapping[str, Any]) -> bool:
        least = schema.get("minItems")
        if not isinstance(least, int) or least < 1:
            return True
        prefix = _list(schema, "prefixItems")
        return all(map(self.ends, prefix[:least])) and (len(prefix) >= least or self.ends(schema.get("items")))


def _list(schema: Mapping[str, Any], keyword: str) -> list[Any]:
    value = schema.get(keyword)
    return value if isinstance(value, list) else []
