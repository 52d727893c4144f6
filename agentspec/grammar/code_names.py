"""Which arguments hold code, as their schemas say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentspec.grammar.schema_parts import parts


def code_names(schemas: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Names of the properties whose `contentMediaType` is a kind of text, such as `text/x-python` or `text/x-diff`."""
    return frozenset(
        name
        for schema in schemas
        for _, part in parts(schema)
        for name, value in _properties(part).items()
        if isinstance(value, Mapping) and str(value.get("contentMediaType", "")).startswith(("text/x-", "application/"))
    )


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}
