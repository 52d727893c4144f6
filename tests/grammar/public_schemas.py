"""The public schemas beside the checkout: each enforced or refused, with documents written at random under its guide.

As a script it prints the table of docs/schemas.md: `python tests/grammar/public_schemas.py MODEL_FOLDER`.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import jsonschema
import numpy as np

from agentspec.errors import GrammarError
from agentspec.grammar.base import Guide
from agentspec.grammar.llg import compile_lark
from agentspec.grammar.schema import _rule, schema_guide
from agentspec.grammar.vocabulary import Vocabulary

SHARED = Path(__file__).resolve().parents[3] / "shared"
DOCUMENTS = 20
_LONG, _LONGEST = 60, 4000


def recorded() -> dict[str, dict[str, Any]]:
    """What each file holds, by its name without ending: `schema`, and `tests` with `data` and `valid`."""
    files = sorted((SHARED / "traces/public/schemas").glob("*.json"))
    return {file.stem: json.loads(file.read_text()) for file in files}


def tool_schemas() -> list[dict[str, Any]]:
    """The parameters of every tool in the recorded conversations, and of the recorded calls in JSON Schema words."""
    folder = SHARED / "traces/public"
    rows = [json.loads(line) for file in sorted((folder / "normalized").glob("*.jsonl")) for line in file.open()]
    calls = [json.loads(line) for line in (folder / "toolcalls/toolcalls.jsonl").open()]
    functions = [tool.get("function", tool) for row in rows for tool in row.get("tools") or ()]
    functions += [_in_json_schema(function) for row in calls for function in row.get("function", ())]
    return [function.get("parameters") or {} for function in functions]


def _in_json_schema(value: Any) -> Any:
    names = {"dict": "object", "tuple": "array", "float": "number"}
    if isinstance(value, list):
        return [_in_json_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {key: _in_json_schema(item) for key, item in value.items() if (key, item) != ("type", "any")}
    return {**plain, "type": names[value["type"]]} if value.get("type") in list(names) else plain


def documents(vocabulary: Vocabulary, guide: Guide, *, seed: int, count: int) -> Iterator[str]:
    """Documents written by random walks; once one is long, whatever closes something comes first."""
    dice = random.Random(seed)
    closers = [*vocabulary.eos, *(vocabulary.encode(text)[0] for text in ("}", "]", '"'))]
    for _ in range(count):
        yield _document(vocabulary, guide, dice, closers)


def _document(vocabulary: Vocabulary, guide: Guide, dice: random.Random, closers: list[int]) -> str:
    cursor, text = guide.start(), b""
    for step in range(_LONGEST):
        legal = np.flatnonzero(np.unpackbits(cursor.mask().view(np.uint8), bitorder="little")).tolist()
        closing = [token for token in closers if token in legal]
        hurry = dice.random() < (0.9 if step > _LONG else 0.2)
        ends = [token for token in closing if token in vocabulary.eos] or closing
        pick = dice.choice(ends if ends and hurry else legal)
        if pick in vocabulary.eos:
            return text.decode()
        text += vocabulary.tokens[pick]
        cursor = cursor.advance(pick)
        assert cursor is not None
    raise AssertionError(f"no end after {_LONGEST} tokens: {text[:200]!r}")


def checker(schema: Mapping[str, Any]) -> jsonschema.protocols.Validator:
    """`jsonschema`'s own reading of the schema, formats included."""
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


def in_order(data: Any, schemas: list[Any], root: Mapping[str, Any]) -> Any:
    """The data with its keys in the order that its schemas declare, those that none declares last."""
    parts = [part for schema in schemas for part in _alternatives(schema, root)]
    if isinstance(data, list):
        return [in_order(item, [part.get("items", {}) for part in parts], root) for item in data]
    if not isinstance(data, dict):
        return data
    declared = [part.get("properties", {}) for part in parts]
    names = dict.fromkeys([*(name for each in declared for name in each if name in data), *data])
    others = [part.get("additionalProperties", {}) for part in parts]
    return {
        name: in_order(data[name], [each[name] for each in declared if name in each] or others, root) for name in names
    }


def _alternatives(schema: Any, root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if not isinstance(schema, Mapping):
        return []
    inner = [part for keyword in ("allOf", "anyOf", "oneOf") for part in schema.get(keyword, ())]
    if "$ref" in schema:
        place: Any = root
        for step in schema["$ref"].split("/")[1:]:
            place = place[step]
        inner.append(place)
    return [schema, *(found for part in inner for found in _alternatives(part, root))]


def compile_ms(vocabulary: Vocabulary, schema: Mapping[str, Any], *, times: int = 5) -> tuple[float, Guide | str]:
    """The median time to compile it with nothing cached, and the guide, or why it was refused."""
    spent, found = [], ""
    for _ in range(times):
        compile_lark.cache_clear()
        _rule.cache_clear()
        start = perf_counter()
        try:
            found = schema_guide(vocabulary, schema)
        except GrammarError as error:
            found = str(error)
        spent.append((perf_counter() - start) * 1000)
    return median(spent), found


def _table(vocabulary: Vocabulary) -> None:
    print("| schema | bytes | outcome | documents valid | compile ms |\n|---|---:|---|---:|---:|")
    for name, row in recorded().items():
        spent, found = compile_ms(vocabulary, row["schema"])
        size = len(json.dumps(row["schema"]))
        valid, outcome = "", "enforced"
        if isinstance(found, str):
            outcome = "refused: " + found.split("can't be enforced: ")[-1].replace("|", "\\|")
        else:
            check = checker(row["schema"])
            written = documents(vocabulary, found, seed=1, count=DOCUMENTS)
            valid = f"{sum(check.is_valid(json.loads(text)) for text in written)} of {DOCUMENTS}"
        print(f"| {name} | {size:,} | {outcome} | {valid} | {spent:.1f} |")
    times = [compile_ms(vocabulary, schema)[0] for schema in tool_schemas()]
    times += [compile_ms(vocabulary, row["schema"])[0] for row in recorded().values()]
    share = sum(spent <= 50 for spent in times) / len(times)
    print(
        f"\n{share:.0%} of {len(times)} schemas within 50 ms; median {median(times):.1f}, longest {max(times):.1f} ms"
    )


if __name__ == "__main__":
    from transformers import AutoTokenizer

    _table(Vocabulary.of(AutoTokenizer.from_pretrained(sys.argv[1])))
