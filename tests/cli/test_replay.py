import json
from pathlib import Path

import pytest

from agentspec.local.engine import Engine
from agentspec.replay.report import faster
from agentspec.replay.wire import ReplayReport

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
ROW = {
    "trace_id": "cats",
    "tools": [TOOL],
    "messages": [
        {"role": "user", "content": "the secret and the secret"},
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": "the secret cat and the secret cat"},
        {"role": "assistant", "content": "two"},
    ],
}


@pytest.fixture
def trace(tmp_path):
    file = tmp_path / "trace.jsonl"
    file.write_text(f"{json.dumps(ROW)}\n{{broken\n")
    return str(file)


def test_the_report_says_what_it_found_in_80_columns_without_the_texts(shell, echo, trace):
    code, shown, trouble = shell("replay", trace)
    lines = [line.rstrip() for line in shown.splitlines()]

    assert (code, trouble) == (0, "")
    assert lines[0].endswith("60 tokens in 13 forwards, identical")
    assert "guesser" in shown
    assert lines[5].split() == ["category", "turns", "tokens", "a", "forward", "plain", "s", "s", "faster", "median"]
    assert lines[6].split()[:4] == ["prose", "2", "60", "4.62"]
    assert [line.split()[:2] for line in lines if line.startswith("cats ")] == [["cats", "1"], ["cats", "2"]]
    assert lines[-1] == f"  {trace}:2: not JSON: Expecting property name enclosed in double quotes at column 2"
    assert max(map(len, lines[:-1])) <= 80
    assert "secret" not in shown


def test_json_is_what_the_schema_says(shell, echo, trace, tmp_path):
    model, draft = str(tmp_path), str(tmp_path.parent)
    code, shown, _ = shell("replay", "--json", "--turns", "1", "--model", model, "--draft", draft, trace)
    report = json.loads(shown)

    assert code == 0
    assert ReplayReport.model_validate(report).model_dump(mode="json") == report
    (turn,) = report["turns"]
    times = (
        "joules",
        "plain_joules",
        "seconds",
        "plain_seconds",
        "prefill_seconds",
        "speedup",
        "prompt_tokens",
        "digest",
    )
    assert {name: value for name, value in turn.items() if name not in times} == {
        "trace_id": "cats",
        "index": 1,
        "number": 1,
        "category": "prose",
        "repeat": False,
        "approximate": False,
        "held": "auto",
        "loosened": False,
        "tokens": 26,
        "forwards": 6,
        "plain_forwards": 26,
        "identical": True,
        "finish_reason": "stop",
        "by_source": report["by_source"],
        "by_segment": report["by_segment"],
        "by_depth": report["by_depth"],
        "fixed": {},
    }
    assert report["total"].items() >= {"tokens": 26, "forwards": 6, "plain_forwards": 26, "identical": True}.items()
    assert report["total"]["tokens_per_forward"] == 4.333
    assert report["by_category"]["prose"].items() >= {"turns": 1, "forwards": 6, "tokens_per_forward": 4.333}.items()
    assert report["skipped"][0]["line"] == 2
    assert echo == [{"model": model, "draft": draft, "speculate": True}]


def test_the_schema_of_the_report_is_the_published_one(shell, repository):
    published = json.loads((repository / "docs" / "replay-report.schema.json").read_text())

    assert json.loads(shell("replay", "--json-schema")[1]) == published


def test_a_changed_token_is_loud_and_exits_1(shell, echo, trace, monkeypatch):
    stream = Engine.stream

    def lie(self, prompt, params=None, *, speculate=None, **options):
        return stream(self, [*prompt, {"role": "user", "content": "x"}] if speculate else prompt, params, **options)

    monkeypatch.setattr(Engine, "stream", lie)
    code, shown, trouble = shell("replay", trace)

    assert code == 1
    assert "NOT identical" in shown.splitlines()[0]
    assert trouble.startswith("LOSSLESSNESS BROKEN: 2 of 2 turns differ from plain decoding (cats [1], cats [3]).")


def test_an_interrupt_leaves_the_report_of_what_is_done(shell, echo, trace, monkeypatch):
    generate = Engine.generate
    calls = iter([None, None, None, KeyboardInterrupt])  # two to warm up

    def interrupted(self, *arguments, **options):
        if trouble := next(calls):
            raise trouble
        return generate(self, *arguments, **options)

    monkeypatch.setattr(Engine, "generate", interrupted)
    code, shown, trouble = shell("replay", "--json", trace)

    assert (code, trouble) == (130, "interrupted: the report holds the turns before\n")
    assert json.loads(shown)["interrupted"]
    assert [turn["index"] for turn in json.loads(shown)["turns"]] == [1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "trace file {file} can't be read: No such file or directory"),
        ("", "no turn can be read from 1 trace file(s); the first: {file}:0: the file is empty"),
        (
            "[tool]\n",
            "no turn can be read from 1 trace file(s); the first: {file}:1: not JSON: Expecting value at column 2; "
            "what a trace can be is in `agentspec replay --list-formats`",
        ),
        ("7\n", "no turn can be read from 1 trace file(s); the first: {file}:1: not a JSON object"),
    ],
)
def test_nothing_to_replay_is_an_error_before_a_model_is_loaded(shell, echo, tmp_path, text, message):
    file = tmp_path / "trace.jsonl"
    if text is not None:
        file.write_text(text)

    assert shell("replay", str(file)) == (2, "", f"error: {message.format(file=file)}\n")
    assert shell("replay", "--turns", "0", str(file)) == (2, "", "error: --turns must be at least 1, not 0\n")
    assert echo == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--budget", "0"], "--budget must be in 1..64, not 0"),
        (["--tool-choice", "none"], "--tool-choice must be auto, required or recorded, not 'none'"),
        (["--category", "edit"], "no turn is of category edit; there are: prose"),
        (["--category", "x"], "no category is called 'x'; there are: tool call, edit, json, free json, code, prose"),
        (["--each", "0"], "--each must be at least 1, not 0"),
    ],
)
def test_bad_options_are_one_line_before_a_model_is_loaded(shell, echo, trace, arguments, message):
    assert shell("replay", *arguments, trace) == (2, "", f"error: {message}\n")
    assert echo == []


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["--html", "{link}"], "--html {link}"),
        (["--resume", "{link}"], "--resume {link}"),
        (["--resume", "new", "--html", "./new"], "--html new"),
        (["--model", "m", "--html", "m"], "--html m"),
        (["--oracle", "--cost", "{cost}", "--html", "{cost}"], "--html {cost}"),
    ],
)
def test_what_is_read_is_not_written_over(shell, echo, trace, tmp_path, monkeypatch, arguments, option):
    monkeypatch.chdir(tmp_path)
    files = {"link": str(tmp_path / "link"), "cost": str(tmp_path / "cost.json")}
    Path(files["link"]).symlink_to(trace)
    Path(files["cost"]).write_text("{}")
    before = Path(trace).read_text()

    told = f"error: {option.format(**files)} is one of the files to read: name another one\n"
    assert shell("replay", *(each.format(**files) for each in arguments), trace) == (2, "", told)
    assert (Path(trace).read_text(), Path(files["cost"]).read_text(), echo) == (before, "{}", [])


def test_repeats_are_told_apart(shell, echo, tmp_path):
    file = tmp_path / "twice.jsonl"
    file.write_text(f"{json.dumps(ROW)}\n{json.dumps(ROW)}\n")

    lines = [line.rstrip() for line in shell("replay", "--runs", "2", str(file))[1].splitlines()]
    assert lines[6].split()[:2] == ["prose", "4"]
    assert lines[8].startswith("without 2 repeats")
    assert lines[9].split()[:2] == ["prose", "2"]


def test_strict_refuses_what_can_not_be_used_before_a_model_is_loaded(shell, echo, trace):
    message = f"error: --strict: 1 skipped; the first: {trace}:2: not JSON: Expecting property name"

    code, shown, told = shell("replay", "--strict", trace)
    assert (code, shown, echo) == (2, "", [])
    assert told.startswith(message)


def test_strict_fails_where_a_turn_can_not_be_asked(shell, echo, tmp_path):
    file = tmp_path / "trace.jsonl"
    file.write_text(f"{json.dumps({**ROW, 'tools': [{'type': 'other'}]})}\n{json.dumps(ROW)}\n")

    assert shell("replay", str(file))[0] == 0
    code, shown, told = shell("replay", "--strict", str(file))
    assert (code, told.startswith(f"error: --strict: 2 skipped; the first: {file}:1: tools[0]")) == (2, True)
    assert shown.splitlines()[0].endswith("identical")


def test_the_formats_are_listed_without_a_file_or_a_model(shell, echo):
    code, shown, told = shell("replay", "--list-formats")

    lines = [line.rstrip() for line in shown.splitlines()]
    assert (code, told, echo) == (0, "", [])
    assert lines[0].split() == ["format", "what", "it", "is", "how", "it", "is", "recognised"]
    assert lines[1].startswith("recording")
    assert max(map(len, lines)) <= 80


def test_other_formats_are_replayed_and_approximate_turns_are_told(shell, echo):
    fixture = str(Path(__file__).parent.parent / "replay" / "fixtures" / "adk.json")

    lines = shell("replay", fixture)[1].splitlines()
    assert (
        lines[4] == "1 of 2 turns are approximate: their recorded answers are not to the character what the model wrote"
    )
    assert json.loads(shell("replay", "--json", fixture)[1])["total"]["approximate"] == 1


@pytest.mark.real_model
def test_a_real_model_answers_identically_with_fixed_budgets_too(shell, smollm2, trace):
    code, shown, _ = shell(*f"replay -m {smollm2} --max-tokens 8 --turns 1 --budget 2 --budget 4".split(), trace)
    lines = [line.split() for line in shown.splitlines()]

    assert code == 0
    assert lines[0][-1] == "identical"
    assert ["fixed", "budget", "2:", "s", "4:", "s", "best", "adaptive/best", "median"] in lines


def test_two_reports_are_compared_and_options_that_would_be_ignored_are_refused(shell, repository):
    report = str(repository / "tests" / "replay" / "golden" / "report.json")

    lines = shell("replay", "--compare", report, report)[1].splitlines()
    assert lines[0] == "the same: 2.00 and 2.00 tokens a forward"
    told = shell("replay", "--compare", "--oracle", report, report)[2]
    assert told == "error: --oracle does not go with --compare: leave one of them out\n"
    assert shell("replay", "--compare", report)[2].endswith("takes two reports that --json wrote, not 1\n")


@pytest.mark.parametrize(
    ("speedup", "told"),
    [(1.049, "as fast as plain decoding"), (0.96, "as fast as plain decoding"), (1.06, "1.1x faster")],
)
def test_a_ratio_that_rounds_to_one_is_no_speedup(speedup, told):
    assert faster(speedup) == told
