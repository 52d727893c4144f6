"""Every format tells the same small story in its own way: asked 2+3, a model calls a tool, is told 5, and says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentspec.replay.conversations import Conversation, Ids
from agentspec.replay.formats import FORMATS
from agentspec.replay.traces import read_conversations, read_traces

FIXTURES = Path(__file__).with_name("fixtures")
LETTERS = {"system": "S", "user": "U", "tool": "T", "assistant": "A"}

EXACT = 'add{"a":2,  "b":3}'  # as the model wrote it, white space and all
LOST = 'add{"a": 2, "b": 3}'  # from an object
STORY = f"S Add with the tool. | U 2+3? | *A {EXACT} | T 5 | *A It is 5."
BARE = f"U 2+3? | *A {EXACT} | T 5 | *A It is 5."
BOTH = "U 2+3? | A (Add.) " + LOST + ' add{"a": 1, "b": 1} | T 5 | T 2 | A It is 5.'

FOUND = {
    "adk.json": ["ADK session", f'U 2+3? | *A~ (Add.) So: {LOST} | T {{"result": 5}} | *A It is 5.'],
    "aider.md": [
        "Aider",
        "U aider --model m/Model: m with diff edit format | U 2+3?/Quickly. | "
        "*A It is 5://> a quote/#### a heading//```/5/``` | U Tokens: 10 sent, 5 received.",
        "U /clear | U All chat history cleared. | U 1+1? | *A 2.",
    ],
    "anthropic_log.jsonl": [
        "call log",
        f"S Add with the tool. | U 2+3? | *A So:  {EXACT}",
        "S Add with the tool. | U 2+3? | *A~ It is 5.",
        f"S Add with the tool. | U 2+3? | *A~ {LOST}",
    ],
    "anthropic_messages.json": [
        "Anthropic messages",
        f"S Add with the tool. | U 2+3? | *A~ (Add.) {LOST} | T 5 | U Well? | *A It is 5.",
    ],
    "atif.json": [
        "ATIF",
        f"S Add with the tool. | U 2+3? | *A~ (Add.) {LOST} | T 5 | A Still 5. | *A It is 5.",
        "U Hello. | *A Hi.",
        "!1 a subagent's trajectory: a step's source is not system, user or agent",
    ],
    "call_log.jsonl": [
        "call log",
        "!5 the answer has status 429",
        "!6 the answer is of no known API",
        STORY,
        'U 1+1? | *A add{"a":1, "b":1}',
        "U Say a letter. | *A a",
        "U Say a letter. | *A b",
        "U Hello. | *A Hi.",
    ],
    "cassette.json": ["VCR cassette", f"S Add with the tool. | U 2+3? | *A~ {LOST}"],
    "cassette.yaml": [
        "VCR cassette",
        "!4 the request asks no model",
        "!5 the answer has status 500",
        f"S Add with the tool. | U 2+3? | A {LOST} | T 5 | A It is 5. | U Sure? | *A Yes.",  # with one tool more
        "U Hello. | *A Hi.",
        STORY,
    ],
    "claude_code.jsonl": [
        "Claude Code",
        "!10 not JSON: Expecting value at column 28",
        BOTH.replace("A ", "*A ").replace("*A (", "*A~ (") + " | U Sure?",
        f"{BOTH} | U Thanks. | *A Welcome.",
        f"{BOTH} | U And 1+1? | *A 2.",
        "U Summary: sums. | *A Go on.",
        "U Look. | *A Seen.",
    ],
    "codex.jsonl": [
        "Codex",
        f"S Add with the tool. | U <environment_context>here</environment_context> | U 2+3? | *A~ {EXACT} | T 5 | "
        "*A It is 5. | U No. | *A Yes.",
        f"S Add with the tool. | U <environment_context>here</environment_context> | U 2+3? | A {EXACT} | T 5 | "
        'A It is 5. | U Patch it. | *A~ patch{"input": "*** Begin"} | T Done | *A Done.',
        "!20 not a record of a format that is known: see `agentspec replay --list-formats`",
        "S Add with the tool. | U The conversation so far was summed up://It was 5. | U Bye. | *A Bye.",
    ],
    "codex_old.jsonl": ["Codex", BARE],
    "conversation.jsonl": [
        "conversation",
        STORY,
        f"U 2+3? | *A~ {LOST} | T 5 | *A It is 5.",
        BARE,
        "!4 not JSON: Expecting ',' delimiter at column 30",
        "U 2+3? | *A~ It is 5.",
    ],
    "langfuse_batch.jsonl": ["Langfuse", "U 2+3? | *A 5"],
    "langfuse_trace.json": ["Langfuse", "!1 an observation: it has no input or no output", STORY],
    "langsmith.jsonl": ["LangSmith", "!4 the run has no outputs: it ended with an error", STORY],
    "langsmith_batch.json": ["LangSmith", "U 2+3? | *A 5"],
    "messages.json": ["messages", STORY],
    "mint.json": ["MINT", "U 2+3? | *A <execute>2+3</execute> | U Observation: 5 | *A It is 5."],
    "openhands.json": [
        "OpenHands",
        "!1 an event: an event of unknown kind 'NovelEvent'",
        f"S Add with the tool. | U 2+3? | *A So: {EXACT} add{{}} | T 5 | T No a. | "
        '*A~ think{"thought": "hm"} | T Stop. | *A It is 5.',
    ],
    "openhands_v0.json": [
        "OpenHands 0.x",
        f'S Add with the tool. | U 2+3? | *A {EXACT} | T 5 | U Bad. | *A~ Look. run{{"command": "ls"}} | *A It is 5.',
    ],
    "openinference.jsonl": [
        "OpenTelemetry",
        "!4 the span of a model's call has no messages: its tracer left them out",
        STORY,
    ],
    "otlp.jsonl": [
        "OpenTelemetry",
        "!2 a span: the span of a model's call has no messages: its tracer left them out",
        f"S Add with the tool. | U 2+3? | *A~ (Add.) {LOST} | T 5 | *A It is 5.",
        'U 1+1? | *A add{"a":1, "b":1}',
        "U Hello. | *A Hi.",
        "U Bye. | *A See you.",
    ],
    "recording.jsonl": ["recording", f"S Add with the tool. | U 2+3? | *A {EXACT}"],
    "responses_items.json": [
        "OpenAI responses",
        f"U 2+3? | *A (Add.) {EXACT} | T 5 | *A~ It is 5.",
    ],
    "responses_log.jsonl": ["call log", "!3 it goes on from a response that is not in the file", STORY],
    "swe_agent.traj": [
        "SWE-agent",
        f"S Add with the tool. | U 1+1? | A 2 | U 2+3? | *A So: {EXACT} | T 5 | *A It is 5.",
    ],
    "tau_bench.json": ["tau-bench", STORY, "!2 traj is missing or empty"],
    "toolbench.json": ["ToolBench", STORY, f"S Add with the tool. | U 2+3? | A {EXACT} | T 5 | *A Five."],
}
"""By file: the format, then its conversations: `*` before what a model wrote, `~` if it is approximate; `!` and a line
before what is skipped."""

IDS = {
    "atif.json": Ids((3, 4, 5), (1, 2)),
    "call_log.jsonl": Ids((4, 5), (1, 2, 3)),
    "conversation.jsonl": Ids((7, 8), (1, 2)),
    "recording.jsonl": Ids((4, 5), (1, 2, 3)),
}
"""Of the one answer in a file that has some."""


def shown(conversation: Conversation) -> str:
    def message(index: int) -> str:
        said = conversation.messages[index]
        mark = "*" * (index in conversation.targets) + LETTERS[said["role"]] + "~" * (index in conversation.approximate)
        content = said.get("content") or ""
        text = content if isinstance(content, str) else "".join(part["text"] for part in content)
        thought = f"({said['reasoning_content']})" if said.get("reasoning_content") else ""
        calls = [call["function"] for call in said.get("tool_calls") or ()]
        written = [f"{function['name']}{function['arguments']}" for function in calls]
        return " ".join(filter(None, [mark, thought, text.replace("\n", "/"), *written]))

    return " | ".join(map(message, range(len(conversation.messages))))


@pytest.mark.parametrize("name", FOUND)
def test_a_file_is_what_its_content_says_and_its_turns_are_what_the_model_wrote(name, tmp_path):
    file = tmp_path / "unnamed"
    file.write_bytes((FIXTURES / name).read_bytes())

    found = [*read_conversations([str(file)])]
    lines = [shown(item) if isinstance(item, Conversation) else f"!{item.line} {item.reason}" for _, item in found]
    assert lines == FOUND[name][1:]
    assert {format_ for format_, _ in found} - {""} == {FOUND[name][0]}


def test_every_fixture_is_in_the_table_and_every_format_but_those_of_tasks_has_one():
    assert {file.name for file in FIXTURES.iterdir()} == set(FOUND)
    formats = {format_.name for format_ in FORMATS}
    assert formats - {found[0] for found in FOUND.values()} == {"LangChain messages", "BFCL", "edits", "prompts"}


@pytest.mark.parametrize("name", IDS)
def test_token_ids_come_along(name):
    (turn,) = [turn for turn in read_traces([FIXTURES / name]).turns if turn.tokens]

    assert Ids(turn.tokens, turn.prompt) == IDS[name]


@pytest.mark.parametrize(
    "name",
    ["atif.json", "call_log.jsonl", "anthropic_log.jsonl", "langsmith.jsonl", "openinference.jsonl", "otlp.jsonl"],
)
def test_the_tools_come_along_in_openais_form(name):
    turn = read_traces([FIXTURES / name]).turns[0]

    assert [tool["function"]["name"] for tool in turn.tools] == ["add"]
    assert turn.tools[0]["function"]["parameters"]["required"] == ["a", "b"]
    assert turn.model == "m"


def test_langchains_own_functions_are_read(tmp_path):
    from langchain_core.load import dumpd
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, messages_to_dict

    openai = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":2,  "b":3}'}}
    calls = [{"name": "add", "args": {"a": 2, "b": 3}, "id": "c1"}]
    exact = AIMessage("", tool_calls=calls, additional_kwargs={"tool_calls": [openai]})
    lost = AIMessage([{"type": "text", "text": "So:"}, {"type": "tool_use", "id": "c1"}], tool_calls=calls)
    rest = [ToolMessage("5", tool_call_id="c1"), AIMessage("It is 5.")]
    asked = [SystemMessage("Add with the tool."), HumanMessage("2+3?")]

    def read(value):
        (tmp_path / "x").write_text(json.dumps(value))
        ((name, found),) = read_conversations([str(tmp_path / "x")])
        return name, shown(found)

    assert read(messages_to_dict([*asked, exact, *rest])) == ("LangChain messages", STORY)
    assert read([dumpd(message) for message in [*asked, exact, *rest]]) == ("LangChain messages", STORY)
    assert read({"messages": [message.model_dump() for message in [*asked, exact, *rest]]})[1] == STORY
    story = STORY.replace("*A add", "*A~ So: add").replace(EXACT, LOST)
    assert read({"messages": [dumpd(message) for message in [*asked, lost, *rest]]})[1] == story


def test_a_recorded_call_that_breaks_its_own_schema_is_replayed_unchanged(tmp_path):
    row = {**json.loads((FIXTURES / "recording.jsonl").read_text()), "format": "other"}
    row["messages"][2]["tool_calls"][0]["function"]["arguments"] = '{"c": "x"'
    (tmp_path / "x").write_text(json.dumps(row))

    (turn,) = read_traces([tmp_path / "x"]).turns
    assert turn.answer["tool_calls"][0]["function"]["arguments"] == '{"c": "x"'
    assert (turn.called, turn.approximate) == (True, False)


def test_reading_needs_no_torch_and_no_yaml_until_there_is_some():
    script = (
        "import sys; sys.modules['torch'] = None; import agentspec.replay.formats, agentspec.replay.convert; "
        "assert 'yaml' not in sys.modules"
    )

    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stderr == ""
