"""The public traces beside the checkout, each in its source's own format, against numbers that were counted by hand.

Turns and calls of the first eleven are those of the sources' own manifest; docs/replay.md has the same table.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from agentspec.replay.conversations import Conversation
from agentspec.replay.convert import convert
from agentspec.replay.readers.messages import text_of
from agentspec.replay.traces import read_conversations, read_traces

pytestmark = pytest.mark.traces

TABLE = {  # source: format, conversations, turns, calls, approximate
    "aider-chat-history": ("Aider", 3, 13, 0, 0),
    "livemcpbench": ("conversation", 2, 30, 28, 0),
    "mint-code-interpreter": ("MINT", 2, 10, 0, 0),
    "openhands-events": ("OpenHands 0.x", 1, 33, 33, 0),
    "openhands-sdk-llm-logs": ("call log", 1, 6, 6, 0),
    "swe-agent-traj": ("SWE-agent", 1, 11, 11, 0),
    "tau-bench-airline": ("tau-bench", 3, 66, 44, 0),
    "toolbench": ("ToolBench", 1, 5, 5, 0),
    "vcr-anthropic": ("VCR cassette", 6, 11, 7, 7),
    "vcr-autogpt-json": ("VCR cassette", 6, 8, 0, 0),
    "vcr-openai-chat": ("VCR cassette", 2, 9, 6, 0),
    "format-fixtures/adk_session.json": ("ADK session", 1, 6, 2, 2),
    "format-fixtures/claude_code_session.jsonl": ("Claude Code", 1, 5, 2, 2),
    "format-fixtures/langsmith_batch_run.json": ("LangSmith", 1, 1, 0, 0),
    "format-fixtures/langsmith_runs_langchain.jsonl": ("LangSmith", 1, 2, 1, 1),
    "format-fixtures/letta_atif.json": ("ATIF", 1, 2, 2, 1),
    "format-fixtures/letta_claude_code.jsonl": ("Claude Code", 1, 2, 1, 1),
    "format-fixtures/letta_openhands.json": ("OpenHands", 1, 3, 2, 1),
    "format-fixtures/openinference_span_attributes.json": ("OpenTelemetry", 1, 1, 0, 0),
    "format-fixtures/otel_genai_span_attributes.json": ("OpenTelemetry", 1, 1, 0, 0),
}
TOKENS = {
    "aider-chat-history": 5373,
    "livemcpbench": 9572,
    "mint-code-interpreter": 2870,
    "openhands-events": 3279,
    "openhands-sdk-llm-logs": 418,
    "swe-agent-traj": 897,
    "tau-bench-airline": 4884,
    "toolbench": 173,
    "vcr-anthropic": 563,
    "vcr-autogpt-json": 1760,
    "vcr-openai-chat": 104,
}
TASKS = {"edits/edits.jsonl": (18, 6), "prompts/prompts.jsonl": (40, 0), "toolcalls/toolcalls.jsonl": (15, 0)}
NO_TRACES = ("SOURCE.md", "tools.json", ".expected.json", "MANIFEST.json")
OTHER_PROMPT = {"aider-chat-history", "openhands-events"}
"""Where the normalized row has another prompt: Aider's log is marked there and `/clear` clears nothing; an error that
OpenHands tells the model is left out."""


def raw(public: Path, source: str) -> list[str]:
    place = public / source
    files = sorted(place.iterdir()) if place.is_dir() else [place]
    return [str(file) for file in files if not file.name.endswith(NO_TRACES)]


@pytest.fixture(scope="module")
def public(shared: Path) -> Path:
    return shared / "traces" / "public"


@pytest.mark.parametrize("source", TABLE)
def test_turns_and_calls(public, source):
    found = convert(raw(public, source), len)

    ((name, counts),) = found.formats.items()
    assert (name, counts.conversations, counts.turns, counts.calls, counts.approximate) == TABLE[source]
    assert found.reasons == {}


def test_every_file_is_in_the_table_or_no_trace(public):
    known = {file for source in [*TABLE, *TASKS] for file in raw(public, source)}
    rest = {str(file) for file in public.rglob("*") if file.is_file()} - known

    for file in rest:
        if "/normalized/" not in file:
            found = [item for _, item in read_conversations([file]) if isinstance(item, Conversation)]
            assert (file, found) == (file, [])


@pytest.mark.parametrize("source", TASKS)
def test_tasks(public, source):
    found = read_traces([public / source])

    assert (len(found.turns), len(found.skipped)) == TASKS[source]
    assert all(turn.answer is None for turn in found.turns)


def said(message):
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
    return message["role"], text_of(message.get("content")).strip(), tuple(calls)


@pytest.mark.parametrize("source", [source for source in TABLE if "/" not in source])
def test_answers_and_prompts_are_those_of_the_normalized_rows(public, source):
    theirs = read_traces([public / "normalized" / f"{source}.jsonl"]).turns
    ours = read_traces(raw(public, source)).turns

    def answers(turns):
        return Counter(
            (said(turn.answer), () if source in OTHER_PROMPT else tuple(map(said, turn.messages))) for turn in turns
        )

    assert answers(ours) == answers(theirs)


def test_a_recorded_call_that_breaks_its_own_tools_is_unchanged(public):
    turns = read_traces(raw(public, "vcr-anthropic")).turns
    calls = [call["function"] for turn in turns for call in turn.answer.get("tool_calls") or ()]

    assert {"name": "stock_lookup", "arguments": '{"ticker": "AAPL"}'} in calls
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for turn in turns for tool in turn.tools}
    assert "ticker" not in tools["stock_lookup"]["properties"]


@pytest.mark.parametrize("name", ["claude_code", "atif", "openhands"])
def test_what_another_normaliser_made_of_the_same_file(public, name):
    folder = public / "format-fixtures"
    file = next(file for file in folder.glob(f"letta_{name}.json*") if "expected" not in file.name)
    expected = json.loads((folder / f"letta_{name}.expected.json").read_text())["records"]
    ((_, found),) = read_conversations([str(file)])

    written = [record for record in expected if record["role"] in ("assistant", "reasoning")]
    calls = [(call["name"], json.loads(call["args"])) for record in written for call in record.get("tool_calls") or ()]
    made = [call["function"] for message in found.messages for call in message.get("tool_calls") or ()]
    assert [(call["name"], json.loads(call["arguments"])) for call in made] == calls
    texts = [record["content"] for record in written if record.get("content")]
    ours = [message for message in found.messages if message["role"] == "assistant"]
    thoughts = [message.get("reasoning_content") for message in ours]
    assert [
        text for pair in zip(thoughts, map(lambda each: each["content"], ours), strict=True) for text in pair if text
    ] == texts
    results = [record["content"] for record in expected if record["role"] == "tool"]
    assert len([message for message in found.messages if message["role"] == "tool"]) == len(results)


@pytest.mark.real_model
def test_tokens_of_the_answers_as_the_embedded_models_tokenizer_counts_them(public, smollm2):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(smollm2 / "tokenizer.json"))

    def tokens(source):
        texts = []
        for turn in read_traces(raw(public, source)).turns:
            texts += [turn.answer.get("reasoning_content") or "", text_of(turn.answer.get("content"))]
            for call in turn.answer.get("tool_calls") or ():
                texts += [call["function"]["name"], call["function"]["arguments"]]
        return sum(len(tokenizer.encode(text).ids) for text in texts)

    assert {source: tokens(source) for source in TABLE if "/" not in source} == TOKENS
