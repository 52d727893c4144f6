import json
import subprocess
import sys

import pytest

from agentspec.errors import TraceError
from agentspec.replay.traces import DEMO, Skipped, read_traces

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
        ({"trace_id": "t"}, "messages is missing or empty"),
        ({"messages": "hello"}, "messages is not a list"),
        ({"messages": [*MESSAGES, "secret"]}, "messages[4] is not an object"),
        ({"messages": MESSAGES, "tools": {}}, None),
        ({"messages": MESSAGES, "tools": {"name": "f"}}, "tools is not a list"),
        ({"messages": MESSAGES, "trace_id": 7}, "trace_id is not a string"),
        ({"messages": MESSAGES, "targets": [1, 2]}, "targets[1] is not the index of an assistant message"),
        ({"messages": MESSAGES, "targets": [True]}, "targets[0] is not the index of an assistant message"),
        ({"messages": MESSAGES, "targets": 1}, "targets is not a list"),
        ({"messages": MESSAGES[:1]}, "no message is a model's"),
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


@pytest.mark.traces
def test_every_public_trace_is_read(shared):
    recording = read_traces(sorted((shared / "traces" / "public" / "normalized").glob("*.jsonl")))

    assert (len(recording.turns), recording.skipped) == (202, ())
    assert len({turn.trace_id for turn in recording.turns}) == 41
