import json
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent.parent / "replay" / "fixtures"
LOG = str(FIXTURES / "call_log.jsonl")
TAU = str(FIXTURES / "tau_bench.json")


def test_conversations_go_to_standard_output_and_the_counts_beside_it(shell):
    code, shown, told = shell("convert", TAU)

    (row,) = map(json.loads, shown.splitlines())
    assert (code, row["trace_id"], row["targets"]) == (0, "task 3 trial 0", [2, 4])
    assert told.splitlines()[0] == "1 conversations, 2 turns, 1 calls from 1 file(s)"
    assert told.splitlines()[-1] == f"  {TAU}:2: traj is missing or empty"


def test_or_to_a_file_and_the_counts_as_json_without_the_texts(shell, tmp_path):
    out = tmp_path / "out.jsonl"
    code, shown, told = shell("convert", LOG, str(FIXTURES / "adk.json"), "-o", str(out), "--json")

    report = json.loads(shown)
    assert (code, told, len(out.read_text().splitlines())) == (0, "", 6)
    assert report["total"] == {"conversations": 6, "turns": 8, "calls": 3, "approximate": 1, "with_ids": 1}
    assert report["first_skipped"][0] == {"file": LOG, "line": 5, "reason": "the answer has status 429"}
    assert [*tmp_path.iterdir()] == [out]

    code, shown, _ = shell("convert", str(FIXTURES / "adk.json"), "-o", str(out))
    lines = [line.rstrip() for line in shown.splitlines()]
    assert lines[2].split() == ["format", "conversations", "turns", "calls", "approximate", "with", "ids"]
    assert lines[3].split() == ["ADK", "session", "1", "2", "1", "1", "0"]
    assert lines[5] == "1 turns are approximate: not to the character what the model wrote."


def test_strict_fails_after_it_wrote(shell, tmp_path):
    out = tmp_path / "out.jsonl"
    code, _, told = shell("convert", TAU, "-o", str(out), "--strict")

    assert (code, len(out.read_text().splitlines())) == (2, 1)
    assert told == f"error: --strict: 1 skipped; the first: {TAU}:2: traj is missing or empty\n"
    assert shell("convert", str(FIXTURES / "adk.json"), "-o", str(out), "--strict")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([TAU, "--json"], "--json needs -o OUT: standard output has the conversations"),
        (["{file}", "-o", "{file}"], "-o {file} is one of the files to convert: name another one"),
        ([TAU, "-o", "{file}/x"], "-o {file}/x can't be written: Not a directory"),
        ([TAU, "--tools", "{file}"], "--tools {file} is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (
            ["{file}"],
            "no turn can be read from 1 trace file(s); the first: {file}:1: no format that is known: see "
            "`agentspec replay --list-formats`",
        ),
        (["{file}.no"], "trace file {file}.no can't be read: No such file or directory"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_file(shell, tmp_path, arguments, message):
    file = tmp_path / "file"
    file.write_text("text\n")
    given = [each.format(file=file) for each in arguments]

    assert shell("convert", *given) == (2, "", f"error: {message.format(file=file)}\n")
    assert [*tmp_path.iterdir()] == [file]
    assert file.read_text() == "text\n"


@pytest.mark.parametrize("text", ["[]", "{}", "null", '[{"type": "web_search_preview"}]'])
def test_tools_of_which_none_is_a_function_are_refused(shell, tmp_path, text):
    (tmp_path / "tools.json").write_text(text)
    code, _, told = shell("convert", TAU, "--tools", str(tmp_path / "tools.json"))

    assert (code, "tools.json holds no function: give a JSON list of tools" in told) == (2, True), told


def test_tools_are_added_where_none_were_recorded(shell, tmp_path):
    (tmp_path / "tools.json").write_text('[{"name": "look", "input_schema": {"type": "object"}}]')
    _, shown, _ = shell("convert", TAU, "--tools", str(tmp_path / "tools.json"))

    assert json.loads(shown)["tools"][0] == {
        "type": "function",
        "function": {"name": "look", "parameters": {"type": "object"}},
    }
