import json

import pytest
from engine_doubles import byte_asker, echo_engine

from agentspec.bench.measure import Contest, Measurement
from agentspec.bench.report import summarize
from agentspec.bench.tasks import CATEGORIES, Task, read_tasks
from agentspec.cli.bench import print_ratios
from agentspec.models.reference import ReferenceRun
from agentspec.models.toy import tiny_target
from agentspec.trace import Stats


class FakeReference:
    """Writes as many tokens as it may, ten in the first round; keeps what it was asked."""

    modes = ("plain", "lookup")

    def __init__(self):
        self.asked = []

    def run(self, prompt, *, mode, max_tokens, exactly):
        self.asked.append((mode, max_tokens, exactly))
        return ReferenceRun((1,) * max_tokens, 1, 0.5, 1.5)


@pytest.fixture
def reference(monkeypatch):
    found = FakeReference()
    monkeypatch.setattr(
        Contest,
        "load",
        lambda model, draft, *, against: Contest(echo_engine(), byte_asker(), reference=found if against else None),
    )
    return found


def test_each_task_runs_in_every_mode_and_the_tables_fit(shell, reference, tmp_path):
    code, shown, trouble = shell("bench", "--model", str(tmp_path), "--against", "transformers", "--max-tokens", "20")
    lines = [line.rstrip() for line in shown.splitlines()]

    assert (code, trouble) == (0, "")
    assert lines[0].split() == ["decoding,", "tokens/s", "plain", "agentspec", "transf.", "+", "lookup"]
    assert [line.split("  ")[0] for line in lines[1:5]] == list(CATEGORIES.values())
    assert max(len(line) for line in lines if not line.startswith("- ")) <= 80


def test_each_ratio_stands_in_its_own_column(capsys):
    ratios = {
        "agentspec / plain": 2.0,
        "agentspec / transformers": 3.0,
        "agentspec / best speculative of transformers": 4.0,
    }
    whole = {name: ratio / 2 for name, ratio in ratios.items()}
    print_ratios("agentspec", {"prose": {"ratios": ratios, "end_to_end_ratios": whole}})

    assert capsys.readouterr().out.split("\n")[1].split()[-6:] == ["2.00x", "(1.0)", "3.00x", "(1.5)", "4.00x", "(2.0)"]


def test_transformers_writes_as_many_tokens_as_a_grammar_let_ours_write(shell, reference, tmp_path):
    shown = shell(
        "bench",
        "-m",
        str(tmp_path),
        "--against",
        "transformers",
        "--tasks",
        "json, prose",
        "--max-tokens",
        "9",
        "--json",
    )[1]
    report = json.loads(shown)

    assert set(reference.asked[2:]) == {
        ("plain", 9, True),
        ("lookup", 9, True),
        ("plain", 9, False),
        ("lookup", 9, False),
    }
    assert list(report["categories"]) == ["json", "prose"]
    assert report["categories"]["json"]["rates"]["transformers"] == 8.0
    assert report["categories"]["prose"]["identical"] is True
    assert len(report["measurements"]) == 6 * 4


def test_ratios_are_of_runs_side_by_side_and_then_the_median():
    def side(place, ours, theirs):
        task = Task(f"t{place}", "prose", ())
        stats = Stats(forwards=4, tokens=10, decode_ms=100, forward_ms=80, propose_ms=15, pick_ms=2)
        return [
            Measurement(task, "agentspec", 0, (1,) * 10, 1, 0.0, 9 / ours, stats),
            Measurement(task, "plain", 0, (1,) * 10, 1, 0.0, 1.0, stats),
            Measurement(task, "transformers", 0, (1,) * 10, 1, 0.0, 9 / theirs),
            Measurement(task, "transformers lookup", 0, (1,) * 10, 1, 0.0, 9 / (2 * theirs)),
        ]

    found = summarize([*side(0, 10, 1), *side(1, 20, 10), *side(2, 30, 10)])["prose"]

    # The median of 10, 2 and 3 is 3; the ratio of the medians, 20 and 10, would be 2.
    assert found["ratios"]["agentspec / transformers"] == 3.0
    assert found["ratios"]["agentspec / best speculative of transformers"] == 1.5
    assert found["outside_forwards"] == {"plain": 0.05, "agentspec": 0.05}
    assert found["drafting"]["agentspec"] == 0.15
    assert found["picks"]["agentspec"] == 0.02
    assert found["tokens_per_forward"]["agentspec"] == 2.5


def test_every_category_has_prompts_and_every_placeholder_is_filled():
    tasks = read_tasks()

    assert [task.category for task in read_tasks(["prose", "tool"], 1)] == ["tool", "prose"]
    assert {task.category for task in tasks} == set(CATEGORIES)
    assert not any("{{" in message["content"] for task in tasks for message in task.messages)
    assert all(task.held == (task.category in ("tool", "json")) for task in tasks)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "vllm"], "--against takes transformers, not 'vllm'"),
        (["--runs", "0"], "--runs must be at least 1, not 0"),
        (["--tasks", "tool,poem"], "no tasks are called 'poem'; there are: tool, rewrite, json, prose"),
        (["--tasks", ","], "--tasks names no task"),
    ],
)
def test_bad_input_is_one_line(shell, reference, tmp_path, arguments, message):
    assert shell("bench", "--model", str(tmp_path), *arguments) == (2, "", f"error: {message}\n")


TOOK = {1: [0.01, 0.01, 0.01], 4: [0.013, 0.015, 0.019]}


def test_the_cost_of_a_forward_is_relative_to_one_token(shell, monkeypatch, tmp_path):
    monkeypatch.setattr("agentspec.models.load.load_target", lambda name, *, half: tiny_target())
    monkeypatch.setattr("agentspec.models.cost.take_turns", lambda steps: dict.fromkeys(steps, TOOK))

    report = json.loads(shell("bench", "--cost", "--json", "-m", str(tmp_path))[1])
    assert report["cost_ms"] == {"agentspec": {"1": 10.0, "4": 15.0}}
    assert report["quartiles_ms"] == {"agentspec": {"1": [10.0, 10.0], "4": [14.0, 17.0]}}
    rows = [line.split() for line in shell("bench", "--cost", "-m", str(tmp_path))[1].splitlines()]
    assert rows[1:] == [["1", "10.0", "1.00"], ["4", "15.0", "1.50"]]
