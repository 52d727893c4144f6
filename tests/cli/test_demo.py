import json


def test_the_demo_shows_each_turn_and_ends_with_the_sum(shell, echo, tmp_path):
    (tmp_path / "m").mkdir()

    code, shown, trouble = shell("demo", "--model", str(tmp_path / "m"), "--max-tokens", "60")
    lines = [line for line in shown.splitlines() if not line.startswith("  ")]
    answers = [line for line in shown.splitlines() if line.startswith("  ")]

    assert (code, trouble) == (0, "")
    assert lines[0] == "m answers 5 turns of a coding agent, each of them twice"
    assert [line[:9] for line in lines[2:7]] == [f"turn {turn}/5:" for turn in range(1, 6)]
    assert all(line.endswith(", identical") for line in lines[2:7])
    assert answers[0] == "  <tool_call>"
    assert " tokens, identical, " in lines[8]
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines[2:7] if "plain decoding" in line]  # the longest of words for a ratio


def test_its_calls_are_required_and_its_report_is_the_replays(shell, echo, tmp_path):
    report = json.loads(shell("demo", "--model", str(tmp_path), "--max-tokens", "8", "--json")[1])

    assert [list(turn["by_segment"]) for turn in report["turns"]] == [["call_frame"]] * 4 + [["prose"]]
    assert report["total"]["tokens"] == 40


def test_a_limit_below_one_is_refused(shell, echo):
    assert shell("demo", "--max-tokens", "0") == (2, "", "error: --max-tokens must be at least 1, not 0\n")
