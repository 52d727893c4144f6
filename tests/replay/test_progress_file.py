"""A replay that is gone on with: what was answered is read from the file, and asked no more."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from engine_doubles import echo_engine

from agentspec.errors import ConfigError
from agentspec.replay.asks import tool_choice
from agentspec.replay.live import Way, replay
from agentspec.replay.traces import read_traces
from agentspec.replay.turns import Turn

ROWS = [
    {"trace_id": name, "messages": [{"role": "user", "content": name * 4}, {"role": "assistant", "content": "x"}]}
    for name in ("cat ", "dog ")
]


def answered(tmp_path, rows, choice="recorded", **way):
    """The report of these rows, and how many turns were not read from the file."""
    trace = tmp_path / "trace.jsonl"
    trace.write_text("\n".join(map(json.dumps, rows)))
    asked = []
    with echo_engine() as engine:
        report = replay(
            engine,
            read_traces([trace]),
            Way(**{"max_tokens": 8, "resume": tmp_path / "progress.jsonl", **way}),
            choose=lambda turn: tool_choice(turn, choice),
            watch=lambda turn, speculate, text, tokens: asked.append(turn.trace_id),
        )
    return report, len(set(asked))


def test_turns_that_were_answered_are_not_asked_again_and_count_the_same(tmp_path) -> None:
    first, asked = answered(tmp_path, ROWS[:1])
    assert asked == 1

    both, asked = answered(tmp_path, ROWS)
    assert (asked, len(both.turns)) == (1, 2)
    again, asked = answered(tmp_path, ROWS)
    assert asked == 0
    assert [turn.model_dump() for turn in again.wire.turns] == [turn.model_dump() for turn in both.wire.turns]
    assert both.wire.turns[0] == first.wire.turns[0]


def test_a_torn_line_is_answered_anew(tmp_path) -> None:
    answered(tmp_path, ROWS)
    file = tmp_path / "progress.jsonl"
    file.write_text(file.read_text()[:-20])

    assert answered(tmp_path, ROWS)[1] == 1
    assert answered(tmp_path, ROWS)[1] == 0


def test_what_was_begun_otherwise_is_not_gone_on_with(tmp_path) -> None:
    answered(tmp_path, ROWS)

    with pytest.raises(ConfigError, match="was begun with another model or machine, or other options: name another"):
        answered(tmp_path, ROWS, max_tokens=9)


def test_turns_of_another_ask_are_asked(tmp_path) -> None:
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    rows = [{**row, "tools": tools} for row in ROWS]
    assert answered(tmp_path, rows, "auto")[1] == 2

    assert [answered(tmp_path, rows, "auto")[1], answered(tmp_path, rows, "required")[1]] == [0, 2]


def test_another_schema_is_another_turn() -> None:
    turn = Turn("t", 1, ({"role": "user", "content": "a"},), (), "f", 1, called=False)

    assert turn.digest == "339239819ee70936"  # as ever: reports of two versions can be compared
    assert len({replace(turn, schema=schema).digest for schema in (None, {}, {"const": 1}, {"const": 2})}) == 4


def test_equal_conversations_keep_their_own_answers(tmp_path) -> None:
    rows = [ROWS[0], {**ROWS[0], "trace_id": "twin"}]
    first, _ = answered(tmp_path, rows, budgets=[4])
    again, asked = answered(tmp_path, rows[::-1], budgets=[4])

    assert asked == 0
    assert [(turn.trace_id, turn.repeat) for turn in again.turns] == [("twin", False), ("cat ", True)]
    assert [turn.seconds for turn in again.turns] == [turn.seconds for turn in first.turns[::-1]]
    assert again.turns[1].stats == first.turns[0].stats  # to the last digit
    assert again.turns[1].fixed == first.turns[0].fixed


def broken(line: str, name: str) -> str:
    row = json.loads(line)
    changes = {
        "torn": lambda: line[:-9],
        "other": lambda: "7",
        "missing": lambda: json.dumps({key: value for key, value in row.items() if key != "joules"}),
        "category": lambda: json.dumps({**row, "category": "poem"}),
        "rounds": lambda: json.dumps({**row, "rounds": row["rounds"][1:]}),
        "type": lambda: json.dumps({**row, "identical": 1}),
        "range": lambda: json.dumps({**row, "seconds": -1.0}),
        "asked": lambda: json.dumps({**row, "asked": None}),
    }
    return changes[name]()


@pytest.mark.parametrize("name", ["torn", "other", "missing", "category", "rounds", "type", "range", "asked"])
def test_a_broken_line_is_told_by_its_number(tmp_path, name: str) -> None:
    answered(tmp_path, ROWS)
    file = tmp_path / "progress.jsonl"
    head, first, second = file.read_text().splitlines()
    file.write_text("\n".join([head, broken(first, name), second, ""]))

    with pytest.raises(ConfigError) as told:
        answered(tmp_path, ROWS)
    assert str(told.value) == (
        f"--resume {file}:2: the line holds no turn that was answered: delete that line or name another file"
    )


def test_a_whole_last_line_without_its_end_is_kept_and_the_next_one_stands_below(tmp_path) -> None:
    answered(tmp_path, ROWS[:1])
    file = tmp_path / "progress.jsonl"
    file.write_text(file.read_text().rstrip())

    assert answered(tmp_path, ROWS)[1] == 1
    assert answered(tmp_path, ROWS)[1] == 0


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (json.dumps(ROWS[0]), "it is a trace, of the format conversation"),
        ("# Notes\n", "its first line is not one's"),
    ],
)
def test_another_file_is_told_for_what_it_is_and_left_alone(tmp_path, text: str, what: str) -> None:
    file = tmp_path / "progress.jsonl"
    file.write_text(text)

    with pytest.raises(ConfigError) as told:
        answered(tmp_path, ROWS)
    assert str(told.value) == f"--resume {file} is no progress file: {what}; name another file"
    assert file.read_text() == text
