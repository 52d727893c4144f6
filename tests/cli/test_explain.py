import json

import pytest

CAT = "the cat and the cat"
ASK = {"messages": [{"role": "user", "content": "x"}, {"role": "user", "content": CAT}]}


def test_runs_name_round_and_source_where_there_are_no_colours_in_80_columns(shell, echo):
    code, shown, trouble = shell("explain", CAT)
    lines = [line.rstrip() for line in shown.splitlines()]

    # The guesser knows four bytes at a time; what comes behind them is the target's own.
    assert (code, trouble) == (0, "")
    assert [line.split(maxsplit=1) for line in lines[:3]] == [
        ["round", "source   text"],
        ["1", "guesser  the"],
        ["1", "target   c"],
    ]
    assert shown.splitlines() == lines  # nothing ends with blanks
    assert lines[lines.index("") :][:4] == [
        "",
        "guesser  another proposer",
        "target  the model's own, one a forward",
        "",
    ]
    assert lines[-1] == "20 tokens in 4 forwards, 5.0 a forward"
    assert max(map(len, lines)) <= 80


def test_signs_in_the_list_are_told(shell, echo):
    shown = shell("explain", "the\tcat and the\tcat")[1]

    assert "\n⇥  a tab\n" in shown
    assert "⏎" not in shown


@pytest.mark.parametrize("prompt", ["and/or", "TCP/IP?", "1.5", "./x"])
def test_a_slash_makes_no_file_of_a_prompt(shell, echo, prompt):
    assert json.loads(shell("explain", "--json", prompt)[1])["text"] == prompt


def test_colours_come_with_a_legend(shell, echo, monkeypatch):
    from rich.console import Console

    monkeypatch.delenv("NO_COLOR", raising=False)
    console = Console(force_terminal=True, color_system="256", highlight=False, soft_wrap=True)
    monkeypatch.setattr("agentspec.cli.explain.out", console)
    shown = shell("explain", CAT)[1]

    assert "\x1b[3;36mthe \x1b[0mc\x1b[3;36mat a\x1b[0mn" in shown
    assert "another proposer" in shown


def test_an_answer_that_a_limit_cut_says_so(shell, echo, tmp_path):
    page = tmp_path / "page.html"
    shown = shell("explain", "--max-tokens", "5", "--html", str(page), CAT)[1]

    assert shown.splitlines()[-1].endswith("a forward, cut by the length limit")
    assert "cut by the length limit" in page.read_text()


@pytest.mark.parametrize("name", ["", "ask.json", "prompt.txt"])
def test_a_turn_of_what_has_none_is_refused(shell, echo, tmp_path, name):
    (tmp_path / "ask.json").write_text(json.dumps(ASK))
    (tmp_path / "prompt.txt").write_text(CAT)
    code, _, trouble = shell("explain", "--turn", "1", str(tmp_path / name) if name else CAT)

    assert (code, echo) == (2, [])
    assert "--turn 1 needs a recorded row or file" in trouble


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ask.json", json.dumps(ASK)),
        ("messages.json", json.dumps(ASK["messages"])),
        ("prompt.txt", CAT),
        ("row.json", json.dumps({"messages": [*ASK["messages"], {"role": "assistant", "content": "y"}]})),
        ("rows.jsonl", json.dumps({"turns": [CAT], "category": "qa"}) + "\n"),
    ],
)
def test_a_file_is_a_text_messages_or_recorded_rows(shell, echo, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    report = json.loads(shell("explain", "--json", str(tmp_path / name))[1])

    assert report["text"] == CAT
    assert "".join(piece["text"] for piece in report["pieces"]).startswith(CAT)
    assert report["total"].items() >= {"tokens": 20, "forwards": 4, "drafted": 16, "accepted": 16}.items()
    assert sorted(report) == [
        "by_segment",
        "finish_reason",
        "message",
        "pieces",
        "rejected",
        "stats",
        "text",
        "total",
    ]


def test_a_page_is_not_written_over_what_is_read(shell, echo, tmp_path):
    file = tmp_path / "question.txt"
    file.write_text("what?")

    assert shell("explain", str(file), "--html", str(file))[2].startswith(f"error: --html {file} is one of the files")
    assert file.read_text() == "what?"


def test_a_page_is_written_beside(shell, echo, tmp_path):
    code, _, trouble = shell("explain", "--html", str(tmp_path / "page.html"), CAT)

    assert (code, trouble.replace("\n", "")) == (0, f"written to {tmp_path}/page.html")
    assert ">c</span>" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([" "], "the prompt is empty: give a text or a file"),
        (["--turn", "0", "x"], "--turn must be at least 1, not 0"),
        (["--turn", "2", "{tmp}/row.json"], "--turn 2: {tmp}/row.json has 1 turn(s)"),
        (["{tmp}/bad.json"], "{tmp}/bad.json is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (["{tmp}/seven.json"], "{tmp}/seven.json must hold messages or a recorded row, not int"),
        (["--tool-choice", "required", "x"], "--tool-choice required needs --tools FILE"),
        (["--html", "{tmp}", "x"], "--html {tmp} can't be written: Is a directory"),
        (["no.jsonl"], "no.jsonl can't be read: No such file"),
        (["{tmp}/no.md"], "{tmp}/no.md can't be read: No such file"),
        (["\udcff"], r"the prompt holds a lone surrogate, '\udcff' at character 0: not text"),
    ],
)
def test_bad_input_is_one_line_before_a_model_is_loaded(shell, echo, tmp_path, arguments, message):
    for name, text in (("row", '{"turns": ["a"], "category": "b"}'), ("bad", "nope"), ("seven", "7")):
        (tmp_path / f"{name}.json").write_text(text)
    code, shown, trouble = shell("explain", *(each.replace("{tmp}", str(tmp_path)) for each in arguments))

    assert (code, shown, trouble) == (2, "", f"error: {message.replace('{tmp}', str(tmp_path))}\n")
    assert echo == []
