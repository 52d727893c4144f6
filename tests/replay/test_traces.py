import json
import subprocess
import sys

import pytest

from agentspec.errors import TraceError
from agentspec.replay.categories import Category
from agentspec.replay.traces import DEMO, read_traces, select
from agentspec.replay.turns import Skipped

MESSAGES = [
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": "b"},
    {"role": "tool", "content": "c"},
    {"role": "assistant", "tool_calls": [{"id": "1"}]},
]


@pytest.fixture
def write(tmp_path):
    def write(*rows):
        file = tmp_path / "trace.jsonl"
        lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
        file.write_bytes(b"\n".join(lines))
        return str(file)

    return write


def test_a_turn_is_what_came_before_a_models_message(write):
    tool = {"type": "function", "function": {"name": "f"}}
    file = write({"trace_id": "t", "tools": [tool], "messages": MESSAGES, "other": 1})

    first, second = read_traces([file]).turns
    assert (first.trace_id, first.index, first.messages, first.called) == ("t", 1, tuple(MESSAGES[:1]), False)
    assert (second.index, second.messages, second.tools, second.called) == (3, tuple(MESSAGES[:3]), (tool,), True)
    assert (second.file, second.line) == (file, 1)


def test_targets_choose_the_messages_and_the_limit_takes_the_first_of_each_line(write):
    file = write({"messages": MESSAGES, "targets": [3]}, {"messages": MESSAGES}, b"", {"messages": MESSAGES})

    assert [(turn.line, turn.index) for turn in read_traces([file], turns=1).turns] == [(1, 3), (2, 1), (4, 1)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"messages": [', "not JSON: Expecting value at column 15"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b"[" * 100_000, "not JSON that can be read"),
        (b"[]", "not a JSON object"),
        (
            {"trace_id": "t"},
            "not a record of a format that is known: see `agentspec replay --list-formats`",
        ),
        ({"messages": []}, "messages is missing or empty"),
        ({"messages": "hello"}, "messages is not a list"),
        ({"messages": [*MESSAGES, "secret"]}, "messages[4] is not an object"),
        ({"messages": MESSAGES, "tools": {}}, None),
        ({"messages": MESSAGES, "tools": {"name": "f"}}, "tools is not a list"),
        ({"messages": MESSAGES, "trace_id": 7}, "trace_id is not a string"),
        ({"messages": MESSAGES, "targets": [1, 2]}, "targets[1] is not the index of an assistant message"),
        ({"messages": MESSAGES, "targets": [True]}, "targets[0] is not the index of an assistant message"),
        ({"messages": MESSAGES, "targets": 1}, "targets is not a list"),
        ({"messages": MESSAGES[:1]}, "no message is a model's"),
        (
            {"messages": MESSAGES, "response_format": {"type": "xml"}},
            "response_format is not of type text, json_object or json_schema with a schema",
        ),
    ],
)
def test_a_line_that_cant_be_used_is_listed_with_its_number_and_the_others_are_read(write, line, reason):
    file = write({"messages": MESSAGES}, line, {"messages": MESSAGES})

    recording = read_traces([file])
    assert recording.skipped == (() if reason is None else (Skipped(file, 2, reason),))
    assert {1, 3} <= {turn.line for turn in recording.turns}


def test_a_message_with_nothing_before_it_has_no_prompt(write):
    recording = read_traces([write({"messages": MESSAGES[1:]})])

    assert recording.skipped[0].reason == "there is no message before it"
    assert [turn.index for turn in recording.turns] == [2]


def test_an_empty_file_beside_a_good_one_is_listed(write, tmp_path):
    (tmp_path / "empty").write_text("\n")

    recording = read_traces([str(tmp_path / "empty"), write({"messages": MESSAGES})])
    assert [each.wire for each in recording.skipped] == [
        {"file": str(tmp_path / "empty"), "line": 0, "reason": "the file is empty"}
    ]


def test_no_turn_at_all_is_an_error(write, tmp_path):
    with pytest.raises(
        TraceError, match=r"no turn can be read from 1 trace file\(s\); the first: .*:1: not a JSON obj"
    ):
        read_traces([write(7)])
    with pytest.raises(TraceError, match=r"trace file .* can't be read: Is a directory"):
        read_traces([tmp_path])


def test_the_demos_trace_is_whole():
    recording = read_traces([DEMO])

    assert (len(recording.turns), recording.skipped) == (5, ())


def test_reading_and_reporting_work_without_torch():
    script = "import sys; sys.modules['torch'] = None; import agentspec.replay.traces, agentspec.replay.report"

    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stderr == ""


@pytest.mark.parametrize(
    ("message", "category"),
    [
        ({"tool_calls": [{"id": "1"}], "content": "{}"}, "tool call"),
        ({"content": ' {"a": 1}\n'}, "free json"),
        ({"content": '```json\n{"a": 1}\n```'}, "free json"),
        ({"content": '{"a": 1} is what I found'}, "prose"),
        ({"content": "f.py\n```\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```"}, "edit"),
        ({"content": "So:\n```py\nprint(1)\n```"}, "code"),
        ({"content": "So you print one, that is all:\n```py\n1\n```"}, "prose"),
        ({"content": [{"type": "text", "text": "[1]"}]}, "free json"),
        ({"content": None}, "prose"),
    ],
)
def test_a_turns_category_is_its_recorded_messages(write, message, category):
    messages = [MESSAGES[0], {"role": "assistant", **message}]
    (turn,) = read_traces([write({"messages": messages})]).turns

    assert turn.category == category
    if not message.get("tool_calls"):
        schema = {"type": "json_schema", "json_schema": {"schema": {"const": 1}}}
        (held,) = read_traces([write({"messages": messages, "response_format": schema})]).turns
        assert (held.category, held.schema) == ("json", {"const": 1})


def test_a_task_that_an_earlier_line_holds_is_a_repeat_and_a_conversation_logged_call_by_call_is_not(write):
    other = [{"role": "user", "content": "z"}, *MESSAGES[1:]]
    file = write(
        {"messages": MESSAGES[:2]},
        {"messages": MESSAGES, "targets": [3]},  # goes on
        {"messages": other},
        {"messages": MESSAGES},  # once more
        {"messages": [*MESSAGES, {"role": "user", "content": "d"}, MESSAGES[1]], "targets": [5]},  # and on
        {"messages": MESSAGES[:2], "tools": [{"other": 1}]},
    )

    assert [(turn.line, turn.repeat) for turn in read_traces([file]).turns] == [
        (1, False),
        (2, False),
        (3, False),
        (3, False),
        (4, True),
        (4, True),
        (5, True),
        (6, False),
    ]


def test_a_bounded_run_takes_the_first_turns_of_many_lines(write):
    prose = [MESSAGES[0], MESSAGES[1]] * 3
    recording = read_traces([write({"messages": prose}, {"messages": prose}, {"messages": MESSAGES})])

    assert [(turn.line, turn.index) for turn in select(recording, each=3).turns] == [(1, 1), (2, 1), (3, 1), (3, 3)]
    assert [turn.index for turn in select(recording, categories=[Category.TOOL_CALL]).turns] == [3]
    with pytest.raises(TraceError, match="no turn is of category edit; there are: prose, tool call"):
        select(recording, categories=[Category.EDIT])


@pytest.mark.traces
def test_every_public_row_is_read_or_skipped_with_its_reason(shared):
    public = shared / "traces" / "public"
    kinds = [public / kind / f"{kind}.jsonl" for kind in ("toolcalls", "edits", "prompts")]
    conversations = read_traces(sorted((public / "normalized").glob("*.jsonl")))
    tasks = read_traces(kinds)

    assert (len(conversations.turns), conversations.skipped) == (202, ())
    assert len({turn.trace_id for turn in conversations.turns}) == 41
    assert {turn.category for turn in conversations.turns} == set(Category) - {Category.JSON}
    assert len(tasks.turns) + len(tasks.skipped) == 15 + 24 + 40
    assert {skipped.reason for skipped in tasks.skipped} == {"the instruction says nothing about the change"}
    assert len(tasks.skipped) == 6


def test_a_file_with_an_empty_list_is_told_what_a_trace_can_be(tmp_path) -> None:
    file = tmp_path / "empty.json"
    file.write_text("[]")

    with pytest.raises(TraceError, match="they hold no record: what a trace can be is in"):
        read_traces([file])
