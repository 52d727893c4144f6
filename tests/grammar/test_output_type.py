"""Output types: what outlines takes, held to by our guides."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import subprocess
import sys
from typing import Literal

import pytest
from outlines.types import CFG, JsonSchema, Regex
from outlines.types.dsl import at_most, optional
from pydantic import BaseModel
from toy_vocabulary import TV, accepts
from typing_extensions import TypedDict

from agentspec.errors import ConfigError, GrammarError
from agentspec.grammar.output_type import output_guide, writes_json
from agentspec.grammar.schema import schema_guide


class Trip(BaseModel):
    zone: str
    days: int
    back: Trip | None = None


@dataclasses.dataclass
class Place:
    zone: str
    days: int


class Stop(TypedDict):
    zone: str
    days: int


class Colour(enum.Enum):
    RED = "red"
    DARK = "dark blue"


def book(zone: str, days: int) -> None: ...


TRIP, SWAPPED = '{"zone": "a", "days": 1}', '{"days": 1, "zone": "a"}'


@pytest.mark.parametrize(
    ("output_type", "accepted", "refused"),
    [
        (Trip, [TRIP, '{"zone": "", "days": 1, "back": {"zone": "", "days": 2}}'], [SWAPPED, '{"zone": "a"}']),
        (Place, [TRIP], [SWAPPED]),
        (Stop, [TRIP], [SWAPPED]),
        (book, [TRIP], [SWAPPED]),
        (list[Trip], ["[" + TRIP + ", " + TRIP + "]"], ["[" + SWAPPED + "]", TRIP]),
        (Trip | int, [TRIP, "12"], [SWAPPED, "a"]),
        (Trip | None, [TRIP, "None"], ["null"]),
        (Literal["a", 1, True], ["a", "1", "True"], ["b", '"a"']),
        (list[Literal["a", "b"]], ['["a", "b"]'], ["[a]", '["a","b"]']),
        (Colour, ["red", "dark blue"], ["RED"]),
        (int, ["-12"], ["1.5"]),
        (float, ["1.5e3"], ["a"]),
        (bool, ["True"], ["true"]),
        (datetime.datetime, ["2024-01-31 10:00:00"], ["2024-01-31"]),
        (dict, ['{"a": [1]}'], ["[]"]),
        (Regex(r"[0-9]+ ?€/m"), ["12 €/m"], ["€/m"]),
        (CFG('start: "a" "b"*'), ["abb"], ["ba"]),
        (JsonSchema({"type": "array", "items": {"type": "integer"}}), ["[1, 2]"], ["[1,2]"]),
        (optional(JsonSchema({"type": "null"})), ["", "null"], ["nullnull"]),
        (at_most(2, JsonSchema({"type": "boolean"})), ["", "truefalse"], ["truefalsetrue"]),
        ({"type": "integer"}, ["3"], ['"3"']),
        ('{"type": "integer"}', ["3"], ['"3"']),
    ],
)
def test_output_is_held_to_the_type(output_type: object, accepted: list[str], refused: list[str]) -> None:
    guide = output_guide(TV, output_type)
    assert [text for text in accepted if not accepts(guide, text)] == []
    assert [text for text in refused if accepts(guide, text)] == []


@pytest.mark.parametrize(
    ("output_type", "words"),
    [
        (object, "output_type <class 'object'> can't be enforced"),
        ("integer", "must be a JSON Schema, but is not JSON"),
        ("[1]", "must be a JSON Schema, an object"),
        (list[CFG('start: "a"')], "a CFG can be an output type, not a part of one"),  # type: ignore[misc]
        (JsonSchema({"type": "null"}, whitespace_pattern=" "), "use json_whitespace"),
        ({"type": "array", "uniqueItems": True}, "'uniqueItems' at $:"),
        (Regex("(?=a)b"), "look-around"),
        (Regex("(a{1000}){1000}"), "1,000,000 long"),
    ],
)
def test_a_type_that_cannot_be_enforced_is_refused_in_one_line(output_type: object, words: str) -> None:
    with pytest.raises(GrammarError) as caught:
        output_guide(TV, output_type)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_mapping_as_output_type_and_as_json_schema_are_one_guide() -> None:
    assert output_guide(TV, {"type": "integer"}) is schema_guide(TV, {"type": "integer"})


def test_white_space_of_a_document_can_be_chosen() -> None:
    laid_out = '{\n  "zone": "a",\n  "days": 1\n}'
    assert not accepts(output_guide(TV, Place), laid_out)
    assert accepts(output_guide(TV, Place, whitespace="bounded"), laid_out)
    with pytest.raises(ConfigError, match="json_whitespace must be fixed or bounded, not 'free'"):
        output_guide(TV, Place, whitespace="free")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("output_type", "document"), [(Trip, True), (Stop, True), ("{}", True), (dict, True), (int, False), (Colour, False)]
)
def test_a_document_is_told_from_text(output_type: object, document: bool) -> None:
    assert writes_json(output_type) == document


def test_outlines_is_imported_only_when_a_type_is_given() -> None:
    script = "import sys, agentspec.grammar.output_type; print('outlines' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"
