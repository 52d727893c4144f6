"""`agentspec replay --oracle`: recorded answers decoded with nothing but a tokenizer."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys

import pytest

from agentspec.cli.replay_text import print_report
from agentspec.replay.compare import read_report
from agentspec.replay.wire import ReplayReport

SAID = "the quick brown fox jumps over the lazy dog"
ROW = {
    "trace_id": "fox",
    "messages": [
        {"role": "user", "content": f"Say: {SAID}"},
        {"role": "assistant", "content": SAID},
        {"role": "user", "content": "Something else."},
        {"role": "assistant", "content": "No."},
    ],
}


@pytest.fixture
def given(tmp_path):
    """A tokenizer of bytes, as tiktoken keeps one, a trace, and what `bench --cost --json` writes."""
    lines = [f"{base64.b64encode(bytes([byte])).decode()} {byte}" for byte in range(256)]
    (tmp_path / "bytes.tiktoken").write_text("\n".join(lines))
    (tmp_path / "trace.jsonl").write_text(json.dumps(ROW))
    cost = {"cost_ms": {"agentspec": {"1": 10.0, "2": 11.0, "16": 20.0}}}
    (tmp_path / "cost.json").write_text(json.dumps(cost))
    return tmp_path


def arguments(given, *more):
    return ("replay", "--oracle", "--tokenizer", str(given / "bytes.tiktoken"), *more, str(given / "trace.jsonl"))


def test_what_was_said_before_is_drafted_and_the_time_is_projected(shell, given):
    code, shown, told = shell(*arguments(given, "--json", "--cost", str(given / "cost.json")))
    report = ReplayReport.model_validate_json(shown)
    first, second = report.turns

    assert (code, told) == (0, "")
    assert (first.tokens, first.plain_seconds, second.tokens, second.forwards) == (len(SAID) + 1, 0.44, 4, 4)
    assert first.forwards < 15
    assert first.by_source["suffix"].accepted == first.tokens - first.forwards
    assert (report.setup.mode, report.setup.cost.base_ms, report.total.identical) == ("oracle", 10.0, None)
    low, high = report.total.speedup_interval
    assert low < report.total.speedup <= high
    again = ReplayReport.model_validate_json(shell(*arguments(given, "--json", "--cost", str(given / "cost.json")))[1])
    assert again.turns == report.turns


def test_without_a_cost_there_are_forwards_and_no_times(shell, given):
    lines = [line.rstrip() for line in shell(*arguments(given))[1].splitlines()]

    assert lines[0] == "5.33 tokens a forward: 48 tokens in 9 forwards"
    assert lines[1] == "no cost of a forward is known: give --cost to learn how much faster that is"
    assert [line.split()[0] for line in lines if line.startswith("fox ")] == ["fox", "fox"]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--model", "m"], "--model does not go with --oracle: name its tokenizer with --tokenizer"),
        (["--budget", "2", "--budget", "3"], "--oracle decodes each answer once: give one --budget at most, not 2"),
        (["--cost", "computed:h100"], "no profile is called 'computed:h100': it is computed:DEVICE:SIZEb:DTYPE"),
        (["--cost", ""], "--cost is empty: give a file that"),
        (["--cost", "none.json"], "--cost none.json can't be read: No such file or directory; give a file that"),
    ],
)
def test_bad_options_are_one_line(shell, given, more, message):
    code, shown, told = shell(*arguments(given, *more))

    assert (code, shown) == (2, "")
    assert told.startswith(f"error: {message}")


def test_a_tokenizer_goes_with_oracle_only(shell, given):
    told = shell("replay", "--tokenizer", "x", str(given / "trace.jsonl"))[2]
    assert told == "error: --tokenizer goes with --oracle: add that, or leave --tokenizer out\n"


def test_no_torch_is_needed(given):
    """Not even with a model's folder, whose chat template is rendered by transformers."""
    told = "import atexit, sys; atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr))"
    chat = {"eos_token": "<|endoftext|>", "chat_template": "{% for m in messages %}{{ m.content }}\n{% endfor %}"}
    folder = given / "model"
    folder.mkdir()
    from agentspec.models.tokenizer_file import find_tokenizer

    (folder / "tokenizer.json").write_text(find_tokenizer(str(given / "bytes.tiktoken")).backend_tokenizer.to_str())
    (folder / "tokenizer_config.json").write_text(json.dumps(chat))
    command = ["replay", "--oracle", "--tokenizer", str(folder), "--cost", "computed:l4:7b:int4"]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{told}; from agentspec.cli.main import main; main()",
            *command,
            str(given / "trace.jsonl"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "COLUMNS": "80"},
    )

    assert done.stderr == "False\n"
    assert "by computed:l4:7b:int4" in done.stdout.splitlines()[0]


def test_a_report_is_told_in_the_terminal_as_it_was(repository, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    golden = repository / "tests" / "replay" / "golden"

    print_report(read_report(golden / "report.json"))
    assert capsys.readouterr().out == (golden / "report.txt").read_text()
