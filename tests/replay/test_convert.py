"""What is converted is read again as the same turns."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from agentspec.replay.convert import convert
from agentspec.replay.traces import DEMO, read_traces

FIXTURES = Path(__file__).with_name("fixtures")
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def turns(file):
    found = [replace(turn, file="", line=0, repeat=False, number=1) for turn in read_traces([file]).turns]
    return sorted(found, key=repr)


@pytest.mark.parametrize("file", [*sorted(FIXTURES.iterdir()), DEMO], ids=lambda file: file.name)
def test_the_turns_are_the_same(file, tmp_path):
    lines: list[str] = []
    found = convert([str(file)], lines.append)
    (tmp_path / "x.jsonl").write_text("".join(lines))

    assert turns(tmp_path / "x.jsonl") == turns(file)
    assert found.total.turns == len(turns(file))
    assert found.total.conversations == len(lines)


def test_counts_and_reasons():
    found = convert([str(FIXTURES / "call_log.jsonl"), str(FIXTURES / "tau_bench.json")], len)

    assert found.wire == {
        "formats": {
            "call log": {"conversations": 5, "turns": 6, "calls": 2, "approximate": 0, "with_ids": 1},
            "tau-bench": {"conversations": 1, "turns": 2, "calls": 1, "approximate": 0, "with_ids": 0},
        },
        "total": {"conversations": 6, "turns": 8, "calls": 3, "approximate": 0, "with_ids": 1},
        "skipped": 3,
        "reasons": {
            "the answer has status 429": 1,
            "the answer is of no known API": 1,
            "traj is missing or empty": 1,
        },
        "first_skipped": [each.wire for each in found.first],
    }


def test_tools_are_for_conversations_that_record_none():
    lines: list[str] = []
    convert([str(FIXTURES / "conversation.jsonl")], lines.append, tools=[TOOL])

    names = [[tool["function"]["name"] for tool in json.loads(line)["tools"]] for line in lines]
    assert names == [["add"], ["f"], ["add"], ["f"]]


def test_a_task_has_no_conversation_and_half_a_character_is_text(tmp_path):
    row = {"messages": [{"role": "user", "content": "\ud83d"}, {"role": "assistant", "content": "é"}]}
    task = {"turns": ["Why?"], "category": "code"}
    (tmp_path / "x").write_text(f"{json.dumps(row)}\n{json.dumps(task)}\n")
    lines: list[str] = []
    found = convert([str(tmp_path / "x")], lines.append)

    assert json.loads(lines[0])["messages"] == row["messages"]
    assert lines[0].isascii()
    assert [(each.line, each.reason) for each in found.first] == [
        (2, "no answer is recorded: agentspec replay reads it as it is")
    ]
