"""Law 8, through the endpoint: without a model a recording is decoded as it was when it was recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentspec import Engine, EngineConfig
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.models.tokenizer_file import find_tokenizer
from agentspec.replay.live import Way, replay
from agentspec.replay.projection import Projection, project
from agentspec.replay.scribe import Scribe
from agentspec.replay.traces import read_traces
from agentspec.replay.turn_report import TurnReport
from agentspec.replay.turns import Recording

BUDGET = 5
ALSO_LIVE = 3  # of the requests: a model takes its time
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": CITY}} for name in ("get_weather", "get_time")]
FILE = "import sys\n\ndef add(a, b):\n    return a - b\n"


def ask(text: str) -> list[dict]:
    return [{"role": "user", "content": text}]


REQUESTS = [
    (CHAT, {"messages": ask("What is the weather in Oslo?"), "tools": TOOLS, "tool_choice": "required"}),
    (
        CHAT,
        {
            "messages": ask("Now Rome."),
            "tools": TOOLS,
            "tool_choice": {"type": "function", "function": {"name": "get_time"}},
            "parallel_tool_calls": False,
        },
    ),
    (CHAT, {"messages": ask("Count."), "max_tokens": 12, "temperature": 0.8, "seed": 3}),
    (CHAT, {"messages": ask("List ten fruits."), "max_tokens": 16, "stop": ["2."]}),
    (CHAT, {"messages": ask("Mend it."), "prediction": {"type": "content", "content": FILE}, "max_tokens": 16}),
    (CHAT, {"messages": ask("A city"), "json_schema": CITY, "json_whitespace": "bounded", "max_tokens": 12}),
    (CHAT, {"messages": ask("A city"), "json_schema": CITY, "tools": TOOLS, "max_tokens": 12}),
    (CHAT, {"messages": ask("A year"), "regex": "in the year [12][0-9]{3}"}),
    (CHAT, {"messages": ask("What is the weather in Oslo?"), "tools": TOOLS, "user": "ann", "max_tokens": 16}),
    (MESSAGES, {"messages": ask("Say: the cat, the cat, the cat."), "max_tokens": 12}),
    (RESPONSES, {"input": "Say: the cat, the cat, the cat.", "max_output_tokens": 16}),
]


def drafted_and_accepted(turn: TurnReport) -> list[tuple[list[int], list[int]]]:
    return [(list(each.draft.tokens), list(each.path)) for each in turn.rounds]


@pytest.mark.real_model
def test_oracle_and_live_accept_what_the_server_accepted(smollm2: Path, serve, tmp_path: Path) -> None:
    file = tmp_path / "recording.jsonl"
    with Engine.load(str(smollm2), config=EngineConfig(budget=BUDGET, measure_cost=False)) as engine:
        endpoint = serve(engine, record=file)
        for path, body in REQUESTS:
            answer = endpoint.post(path, {"temperature": 0, **body})
            assert answer.status_code == 200, answer.text
        endpoint.app.state.recorder.close()
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        tokenizer = find_tokenizer(str(smollm2))
        scribe = Scribe(tokenizer, Vocabulary.of(tokenizer))
        recording = read_traces([file])
        oracle = project(scribe, recording, Projection(tokenizer="", budget=BUDGET, history=True))
        first = Recording(recording.turns[:ALSO_LIVE], ())
        live = replay(engine, first, Way(max_tokens=1000, history=True))
    served = [[(each["draft"]["tokens"], each["path"]) for each in row["answers"][0]["rounds"]] for row in rows]
    assert sum(len(path) for rounds in served for _, path in rounds) > 40  # drafts that were accepted
    assert not oracle.skipped
    assert [drafted_and_accepted(turn) for turn in oracle.turns] == served
    assert [drafted_and_accepted(turn) for turn in live.turns] == served[:ALSO_LIVE]
