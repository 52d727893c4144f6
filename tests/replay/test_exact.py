"""A recording is run again round by round, and the first difference is found."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import reduce
from math import inf
from operator import getitem
from typing import Any

import pytest
from engine_doubles import byte_asker
from toy_vocabulary import EOS, TV

from agentspec import Engine, EngineConfig, SamplingParams
from agentspec.draft import EMPTY
from agentspec.errors import TraceError
from agentspec.local.load import Placement, load_models
from agentspec.replay.exact import Difference, ExactEngine, check_recordings
from agentspec.server.desk import Asked, Running
from agentspec.server.recording import row_of
from agentspec.testing import ScriptedTarget

PROMPT = b"user: say abcd\nassistant:"


def target(says: bytes) -> ScriptedTarget:
    def logits(tokens: Any) -> dict[int, float]:
        written = bytes(tokens[len(PROMPT) :])
        token = says[len(written)] if says.startswith(written) and len(written) < len(says) else EOS
        return {token: 10.0, ord("c"): 9.0}

    return ScriptedTarget(logits, vocab_size=len(TV), eos=frozenset({EOS}), context_length=4096)


def row(**changed: Any) -> dict[str, Any]:
    def a_round(draft: bytes, path: list[int], tokens: list[int]) -> dict[str, Any]:
        nodes = {"tokens": list(draft), "parents": list(range(-1, len(draft) - 1)), "scores": [0.5] * len(draft)}
        return {"draft": {**nodes, "sources": ["suffix"] * len(draft)}, "path": path, "tokens": tokens}

    rounds = [a_round(b"", [], [*b"a"]), a_round(b"bcx", [0, 1], [*b"bcd"]), a_round(b"", [], [EOS])]
    found = {
        "format": "agentspec-recording",
        "version": 1,
        "trace_id": "story",
        "messages": [{"role": "user", "content": "say abcd"}, {"role": "assistant", "content": "abcd"}],
        "targets": [1],
        "prompt": {"tokens": list(PROMPT)},
        "params": {"max_tokens": 16, "seed": 3, "logit_bias": {}, "bad_words": []},
        "options": {"tool_choice": "auto"},
        "answers": [{"tokens": [*b"abcd", EOS], "rounds": rounds}],
    }
    return found | changed


def checked(says: bytes, tmp_path: Any, *rows: dict[str, Any]) -> tuple[Any, ScriptedTarget]:
    file, model = tmp_path / "recording.jsonl", target(says)
    file.write_text("\n".join(json.dumps(each) for each in rows))
    return check_recordings(ExactEngine(model, byte_asker(), EngineConfig(max_draft=8)), [str(file)]), model


def test_the_same_model_writes_the_same_with_the_same_drafts(tmp_path) -> None:
    report, model = checked(b"abcd", tmp_path, row())

    (found,) = report.checked
    assert (found.trace_id, found.rounds, found.tokens, found.difference) == ("story", 3, 5, None)
    assert model.forwards == 3  # as many as were recorded: bc was drafted again


def test_the_first_difference_is_told_with_both_logits(tmp_path) -> None:
    report, _ = checked(b"abXd", tmp_path, row())

    found = report.first.difference
    assert (found.place, found.round, found.recorded, found.now) == (2, 2, ord("c"), ord("X"))
    assert found.now_logprob - found.recorded_logprob == pytest.approx(1.0)


def test_an_answer_that_ends_sooner_or_later_differs_too(tmp_path) -> None:
    (answer,) = row()["answers"]
    sooner = {"tokens": [*b"abcd"], "rounds": answer["rounds"][:2]}
    report, _ = checked(b"abcdc", tmp_path, row(answers=[sooner], params={"max_tokens": 5, "seed": 3}))
    assert report.first.difference == Difference(4, 2, None, ord("c"), None, pytest.approx(-0.0325, abs=1e-3))


def test_what_can_not_be_run_again_is_listed_with_its_reason(tmp_path) -> None:
    report, _ = checked(b"abcd", tmp_path, row(redacted=True), {"x": 1}, row(prompt={"tokens": [9999]}), row())

    assert [each.reason for each in report.skipped] == [
        "the line can't be run again: it is redacted",
        "not a line that agentspec serve --record wrote",
        "the prompt's tokens are not this model's: name the model that was recorded",
    ]
    with pytest.raises(TraceError, match=r"no answer of 1 file\(s\) can be run again; the first: not a line that"):
        checked(b"abcd", tmp_path, {"x": 1})


def broken(*path: Any, to: Any = None) -> dict[str, Any]:
    """The line with another value at a place; None: without any."""
    line = row()
    *way, last = path
    place = reduce(getitem, way, line)
    if to is None:
        del place[last]
    else:
        place[last] = to
    return line


SURE = {"scores": [0.5, 0.5], "sources": ["suffix", "suffix"]}
ROUND = ("answers", 0, "rounds", 1)
DRAFT = (*ROUND, "draft")
NO_IDS = "is no list of this model's token ids"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (broken("answers"), "answers is missing or empty"),
        (broken("answers", 0, "tokens"), "answers[0].tokens is missing or empty"),
        (broken("answers", 0, "tokens", to=[]), "answers[0].tokens is missing or empty"),
        (broken("answers", 0, "tokens", to=[9999]), f"answers[0].tokens {NO_IDS}"),
        (broken("answers", 0, "tokens", to=[1]), "answers[0].tokens is other than what its rounds wrote"),
        (broken("answers", 0, "rounds"), "answers[0].rounds is missing or empty"),
        (broken("answers", 0, "rounds", to="x"), "answers[0].rounds is not a list"),
        (broken(*ROUND, "tokens"), "answers[0].rounds[1].tokens is missing or empty"),
        (broken(*ROUND, "tokens", to=["b"]), f"answers[0].rounds[1].tokens {NO_IDS}"),
        (broken(*DRAFT), "answers[0].rounds[1].draft is no object"),
        (broken(*DRAFT, "tokens", to=[98, 99, -1]), f"answers[0].rounds[1].draft.tokens {NO_IDS}"),
        (broken(*DRAFT, "tokens", to=[98, 99, len(TV)]), f"answers[0].rounds[1].draft.tokens {NO_IDS}"),
        (broken(*DRAFT, "tokens", to=["b", "c", "x"]), f"answers[0].rounds[1].draft.tokens {NO_IDS}"),
        (broken(*DRAFT, "parents", to=5), "answers[0].rounds[1].draft.parents is no list of indexes"),
        (broken(*DRAFT, "scores", to=["a"] * 3), "answers[0].rounds[1].draft.scores is no list of finite numbers"),
        (broken(*DRAFT, "scores", to=[inf] * 3), "answers[0].rounds[1].draft.scores is no list of finite numbers"),
        (broken(*DRAFT, "sources", to=[1, 2, 3]), "answers[0].rounds[1].draft.sources is no list of names"),
        (
            broken(*DRAFT, "parents", to=[-1, 2, 1]),
            "answers[0].rounds[1].draft is no tree: a draft's parents must come before their children",
        ),
        (
            broken(*DRAFT, to={"tokens": [98, 98], "parents": [-1, -1], **SURE}),
            "answers[0].rounds[1].draft is no tree: siblings of a draft must hold distinct tokens",
        ),
        (
            broken(*DRAFT, "scores", to=[0.5]),
            "answers[0].rounds[1].draft is no tree: a draft's tokens, parents, scores and sources differ in length",
        ),
        (broken("targets", to="x"), "targets is no list with the index of the message that answers others"),
        (broken("prompt", "text", to=7) | {"messages": []}, "text is not a string"),
    ],
)
def test_a_broken_line_is_skipped_before_the_model_runs(tmp_path, line, reason) -> None:
    report, model = checked(b"abcd", tmp_path, line, row())

    assert [each.reason for each in report.skipped] == [reason]
    assert [each.difference for each in report.checked] == [None]  # the next line is run all the same
    assert model.forwards == 3


@pytest.mark.real_model
def test_what_the_server_records_of_a_real_model_comes_out_the_same(smollm2, tmp_path) -> None:
    config = EngineConfig(measure_cost=False)
    loaded = load_models(str(smollm2), None, placement=Placement(), config=config)
    messages = [{"role": "user", "content": "Repeat after me: the cat sat on the mat, the cat sat on the mat."}]
    asked = Asked("/v1/chat/completions", messages, SamplingParams(max_tokens=12, temperature=0.8, seed=5), {})
    with Engine(loaded.core(None, config), loaded.asker) as engine:
        result = engine.generate(messages, asked.params, rounds=True)
        running = Running(asked, prompt=engine.tokens(messages), results={0: result})
    lines = [row_of(running, redact=False) | {"format": "agentspec-recording", "version": 1} for _ in range(2)]
    tokens, undrafted = [*result.tokens[:5], 7, *result.tokens[6:]], {key: [] for key in asdict(EMPTY)}
    lines[1]["answers"] = [{"tokens": tokens, "rounds": [{"draft": undrafted, "tokens": tokens}]}]
    file = tmp_path / "recording.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))

    same, changed = check_recordings(ExactEngine(loaded.target, loaded.asker, config), [str(file)]).checked
    assert (same.difference, same.rounds) == (None, len(result.rounds))
    assert (changed.difference.place, changed.difference.recorded, changed.difference.now) == (5, 7, result.tokens[5])
