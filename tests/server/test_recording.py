"""`--record`: what is written, what is left out, and what happens where it can't be."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest

from agentspec.config import SamplingParams
from agentspec.errors import ConfigError
from agentspec.replay.traces import read_row, read_traces
from agentspec.replay.turns import Turn
from agentspec.server.app import create_app
from agentspec.server.recording import digest
from agentspec.server.settings import ServerSettings

API = "/v1/chat/completions"
ASK = [{"role": "user", "content": "Where is the Colosseum?"}]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome"]}},
    "required": ["city"],
    "additionalProperties": False,
}
BODY = {"messages": ASK, "json_schema": SCHEMA, "temperature": 0.5, "seed": 7, "stop": "###", "user": "ann"}


def lines(endpoint, path: Path) -> list[dict]:
    endpoint.app.state.recorder.close()
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_holds_what_exact_replay_needs_and_replay_reads_it(serve, tmp_path):
    path = tmp_path / "trace.jsonl"
    endpoint = serve(record=path)
    text = endpoint.post(API, {**BODY, "n": 2}).json()["choices"][0]["message"]["content"]
    (row,) = lines(endpoint, path)

    assert (row["format"], row["version"], row["model"]) == ("agentspec-recording", 1, "smollm2-135m")
    assert (row["params"]["seed"], row["params"]["temperature"], row["params"]["stop"]) == (7, 0.5, ["###"])
    assert len(row["answers"]) == 2
    answer = row["answers"][0]
    assert answer["text"] == text == '{"city": "Rome"}'
    assert [token for each in answer["rounds"] for token in each["tokens"]] == answer["tokens"]
    assert answer["usage"]["prompt_tokens"] == len(row["prompt"]["tokens"])
    forced = answer["rounds"][0]
    assert forced["draft"]["sources"][0] == "grammar"
    assert [forced["draft"]["tokens"][node] for node in forced["path"]] == forced["tokens"][: len(forced["path"])]

    again = endpoint.engine.generate(ASK, SamplingParams.of(row["params"]), json_schema=SCHEMA, speculate=False)
    assert [each["tokens"] for each in row["answers"]] == [list(each.tokens) for each in (again, *again.alternatives)]

    (turn,) = read_traces([path]).turns
    assert (turn.messages, turn.schema, turn.index, turn.category) == (tuple(ASK), SCHEMA, 1, "json")
    assert path.stat().st_mode & 0o777 == 0o600


def test_redacted_there_is_no_text_and_replay_says_so(serve, tmp_path):
    path = tmp_path / "trace.jsonl"
    endpoint = serve(record=path, record_redact=True)
    endpoint.post(API, {**BODY, "prediction": {"type": "content", "content": "Rome"}})
    (row,) = lines(endpoint, path)

    written = path.read_text()
    assert not [text for text in ("Colosseum", "Rome", "city", "ann", "###") if text in written]
    assert row["messages"][0] == {"role": "user", **digest(ASK[0])}
    assert row["answers"][0]["text"] == digest('{"city": "Rome"}')
    assert len(row["prompt"]["tokens"]) == row["answers"][0]["usage"]["prompt_tokens"]
    with pytest.raises(ValueError, match="redacted"):
        read_row(row, "file")


def test_a_request_that_is_not_finished_is_not_recorded(serve, tmp_path):
    path = tmp_path / "trace.jsonl"
    endpoint = serve(record=path)
    assert endpoint.post(API, {"messages": []}).status_code == 400
    assert endpoint.post(API, {**BODY, "json_schema": {"type": "banana"}}).status_code == 400

    assert lines(endpoint, path) == []


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.mkdir(), "is no file"),
        (lambda path: path.write_text("# Notes\n"), "holds something else than a recording"),
        (lambda path: os.mkfifo(path), "is no file"),
    ],
)
def test_a_path_that_can_not_be_used_is_refused_before_the_model_is_loaded(make, reason, tmp_path):
    make(tmp_path / "x")

    with pytest.raises(ConfigError, match=reason):
        create_app(lambda: pytest.fail("loaded"), ServerSettings(model_names=("m",), record=tmp_path / "x"))
    with pytest.raises(ConfigError, match="No such file"):
        create_app(lambda: pytest.fail("loaded"), ServerSettings(model_names=("m",), record=tmp_path / "no" / "x"))


def test_a_write_that_fails_is_warned_about_once_and_hurts_nobody(serve, tmp_path, caplog):
    path = tmp_path / "trace.jsonl"
    endpoint = serve(record=path)
    path.unlink()
    path.mkdir()
    with caplog.at_level(logging.WARNING):
        answers = [endpoint.post(API, BODY).status_code for _ in range(2)]
        endpoint.app.state.recorder.close()

    assert answers == [200, 200]
    assert [each.name for each in caplog.records] == ["agentspec.server.recording"]


def test_a_torn_line_does_not_take_the_next_one_with_it(serve, tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text('{"format":"agentspec-recording","vers')
    endpoint = serve(record=path)
    endpoint.post(API, BODY)
    endpoint.app.state.recorder.close()

    found = read_traces([path])
    assert ([each.line for each in found.skipped], [turn.line for turn in found.turns]) == ([1], [2])


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"version": 2}, "another version"),
        ({"messages": None}, "messages is missing"),
    ],
)
def test_what_a_turn_can_not_ask_is_left_out_with_its_reason(more, reason):
    row = {"format": "agentspec-recording", "version": 1, "messages": [*ASK, {"role": "assistant", "content": "Rome"}]}
    (turn,) = read_row(row, "file")
    assert isinstance(turn, Turn)

    with pytest.raises(ValueError, match=reason):
        read_row(row | more, "file")
