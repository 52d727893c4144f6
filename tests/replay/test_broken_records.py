"""Whatever stands in a record, it is read or skipped with a reason: a reader never fails."""

import copy
import json
import random
from pathlib import Path

import pytest

from agentspec.replay.conversations import Conversation
from agentspec.replay.traces import read_conversations

FIXTURES = Path(__file__).with_name("fixtures")
WRONG = (None, 7, "x", [], {}, [7], [{}], '{"a": [1]}')


def records(file):
    if file.suffix == ".jsonl":
        lines = file.read_text().splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]
    value = json.loads(file.read_text())
    return value if isinstance(value, list) else [value]


def places(value, place=()):
    if place:
        yield place
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*place, key))


def with_(value, place, other):
    if not place:
        return other
    value = copy.copy(value)
    value[place[0]] = with_(value[place[0]], place[1:], other)
    return value


@pytest.mark.parametrize("file", [*FIXTURES.glob("*.json*"), *FIXTURES.glob("*.traj")], ids=lambda file: file.name)
def test_any_value_anywhere(file, tmp_path):
    good = records(file)
    cases = [(place, wrong) for place in places(good) for wrong in WRONG]
    cases = random.Random(0).sample(cases, min(len(cases), 600))
    lines = [json.dumps(with_(good, place, wrong)) for place, wrong in cases]
    (tmp_path / "x").write_text("\n".join(lines))

    for _, item in read_conversations([str(tmp_path / "x")]):
        if isinstance(item, Conversation):
            json.dumps(item.row)
            answers = [item.messages[target] for target in item.targets]
            assert all(isinstance(answer.get("content"), str | list | None) for answer in answers)
            assert len([*item.turns()]) == len(answers)
        else:
            assert item.reason
