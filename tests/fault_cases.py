"""Values of public faults that several levels are tested with: the engine, its text, the command, LangChain."""

from __future__ import annotations

from typing import Any

UNENFORCEABLE: list[tuple[dict[str, Any], str]] = [
    ({"type": "integer", "not": {"const": 0}}, "'not' at $:"),
    ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "'uniqueItems' at $:"),
    ({"type": "string", "pattern": "(?=a)b"}, "'pattern' at $:"),
    ({"type": "string", "pattern": "["}, "'pattern' at $:"),
    (
        {"oneOf": [{"type": "string", "pattern": "^[a-z]{2,3}$"}, {"type": "string", "pattern": "^[a-z]{3,4}$"}]},
        "'oneOf' at $:",
    ),
    ({"$ref": "https://example.org/s.json"}, "'$ref' at $:"),
]
"""P15: schemas that can't be enforced, and what the refusal must name."""


def as_tool(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A tool with one argument, `x`, of this schema."""
    parameters = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": parameters}}


def strings(*names: str) -> dict[str, Any]:
    """P13: an object of these strings, all of them required."""
    properties = {name: {"type": "string"} for name in names}
    return {"type": "object", "properties": properties, "required": list(names), "additionalProperties": False}


ORDERS = [("zeta", "alpha", "mid"), ("alpha", "mid", "zeta")]
"""P13: the same keys, declared in two orders."""

NOTHING_TO_SAY: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "now"}},
    {"type": "function", "function": {"name": "ping", "parameters": {}}},
    {
        "type": "function",
        "function": {
            "name": "w",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    },
]
"""P11: two tools without parameters, and one with."""

SHORT_TEXT = {
    "type": "object",
    "properties": {"a": {"type": "string", "maxLength": 3}},
    "required": ["a"],
    "additionalProperties": False,
}
"""P14: what a model in love with blanks is asked for."""
