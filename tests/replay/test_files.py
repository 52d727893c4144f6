"""What the records of a file are, and that reading a large one needs no more memory than a small one."""

import json
import tracemalloc

import pytest

from agentspec.errors import TraceError
from agentspec.replay import files
from agentspec.replay.convert import convert
from agentspec.replay.traces import read_traces
from agentspec.replay.turns import Skipped

ASK = {"role": "user", "content": "a"}
ROW = {"messages": [ASK, {"role": "assistant", "content": "b"}]}


@pytest.fixture
def write(tmp_path):
    def write(text):
        file = tmp_path / "trace"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(file)

    return write


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (json.dumps(ROW), [1]),
        (json.dumps(ROW, indent=1), [1]),
        (json.dumps([ROW, ROW]), [1, 2]),  # places in the list
        (json.dumps([ROW, ROW], indent=1), [1, 2]),
        (f"\n{json.dumps(ROW)}\n\n{json.dumps(ROW)}\n", [2, 4]),
        (f"{json.dumps(ROW)}\r\n{json.dumps(ROW)}\r\n", [1, 2]),
        (f"{json.dumps(ROW['messages'])}\n{json.dumps([ROW, ROW])}\n", [1, 2, 2]),
        (b"\xef\xbb\xbf" + json.dumps(ROW).encode(), [1]),
        (b"\xef\xbb\xbf" + json.dumps(ROW, indent=1).encode(), [1]),
        (json.dumps(ROW["messages"][0]) + "\n" + json.dumps(ROW["messages"][1]), [1]),
    ],
)
def test_lines_lists_and_documents(write, text, lines):
    found = read_traces([write(text)])

    assert [turn.line for turn in found.turns] == lines
    assert found.skipped == ()


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("{broken\n" + json.dumps(ROW), 1, "not JSON: Expecting property name enclosed in double quotes at column 2"),
        ("Listening on port 80\n" + json.dumps(ROW), 1, "not JSON: Expecting value at column 1"),
        (json.dumps(ROW) + "\n[[[1]]]", 2, "not a JSON object"),
        (json.dumps(ROW) + "\n[]", 2, "not a JSON object"),
        (json.dumps(ROW) + "\n" + "9" * 5000, 2, "not JSON that can be read"),
        (json.dumps([ROW, None]), 2, "not a JSON object"),
    ],
)
def test_a_broken_record_is_skipped_where_it_stands(write, text, line, reason):
    file = write(text)

    assert read_traces([file]).skipped == (Skipped(file, line, reason),)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            json.dumps(ROW, indent=1)[:-10],
            r":9: not JSON: Unterminated string starting at at column \d+(; what a trace can be .*)?",
        ),
        ("# Notes\nand more\n", ":1: no format that is known: see `agentspec replay --list-formats`"),
        ('{"a": 1}', ":1: not a record of a format that is known: see `agentspec replay --list-formats`"),
        (b'{\n"a": "\xff"}', ":0: not UTF-8"),
        ("interactions: a: b\n", ":1: not YAML: line 1"),
    ],
)
def test_a_file_that_holds_no_trace_says_why_once(write, text, reason):
    with pytest.raises(TraceError, match=f"the first: .*{reason}$"):
        read_traces([write(text)])


def test_what_is_read_whole_is_refused_above_a_size_and_a_line_is_left_out(write, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_DOCUMENT_BYTES", 100)
    monkeypatch.setattr(files, "LARGEST_TEXT_BYTES", 100)
    monkeypatch.setattr(files, "LARGEST_LINE_BYTES", 150)
    for text in (json.dumps(ROW, indent=8), "# aider chat started at now\n" + "\n" * 100):
        with pytest.raises(
            TraceError, match=r"is one document of 0 MiB, and such a file is read whole, up to 0 MiB: split"
        ):
            read_traces([write(text)])

    file = write(f"{json.dumps(ROW)}\n{json.dumps({**ROW, 'more': 'x' * 500})}\n{json.dumps(ROW)}\n")
    found = read_traces([file])
    assert ([turn.line for turn in found.turns], [each.line for each in found.skipped]) == ([1, 3], [2])
    assert found.skipped[0].reason == "the line is longer than 0 MiB"


def test_memory_is_flat_whatever_the_size(write):
    def peak(rows):
        text = "x" * 4000
        lines = [
            {
                "request": {"messages": [{"role": "user", "content": f"{row} {text}"}]},
                "response": {"role": "assistant", "content": "b"},
            }
            for row in range(rows)
        ]
        file = write("".join(f"{json.dumps(line)}\n" for line in lines))
        del lines
        tracemalloc.start()
        try:
            assert convert([file], len).total.turns == rows
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    files_bytes = 3000 * 4000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agentspec.replay.traces.MOST_CHARS", 200_000)
        assert peak(3000) < files_bytes / 4
        assert peak(3000) < peak(1000) + 2000 * 4000 / 20  # of what is read more, not a twentieth stays
