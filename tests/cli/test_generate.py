import io
import json
import sys

import pytest
from fault_cases import ORDERS, UNENFORCEABLE, as_tool, strings

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CAT = "the [bold]cat[/] and the [bold]cat[/]"


def test_text_streams_to_standard_output_as_it_is_and_the_summary_to_standard_error(shell, echo):
    code, shown, summary = shell("generate", CAT)

    assert (code, shown) == (0, CAT + "\n")
    assert summary.startswith("38 tokens in 8 forwards, 4.8 a forward · ")
    assert summary.endswith(" tokens/s\n")
    assert echo == [{"model": None, "draft": None, "speculate": True}]


def test_json_holds_message_usage_stats_and_seconds_and_nothing_is_streamed(shell, echo):
    code, shown, summary = shell(
        "generate", "--json", "--system", "Be kind.", "--no-speculate", "-m", "smollm2-135m", "hello"
    )
    report = json.loads(shown)

    assert (code, summary) == (0, "")
    assert sorted(report) == ["finish_reason", "message", "seconds", "seed", "stats", "text", "usage"]
    assert report["message"] == {"role": "assistant", "content": "hello"}
    assert report["finish_reason"] == "stop"
    prompt = len("system: Be kind.\nuser: hello\nassistant:")
    assert report["usage"] == {
        "prompt_tokens": prompt,
        "completion_tokens": 6,
        "total_tokens": prompt + 6,
        "cached_tokens": 0,
    }
    assert (report["stats"]["forwards"], report["stats"]["tokens"]) == (6, 6)
    assert echo == [{"model": "smollm2-135m", "draft": None, "speculate": False}]


def test_a_dash_reads_standard_input_and_raw_leaves_the_template_out(shell, echo, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("a\nuser: b\nassistant:"))

    assert json.loads(shell("generate", "--raw", "--json", "-")[1])["usage"]["prompt_tokens"] == 20


@pytest.mark.parametrize(("options", "text"), [(["--stop", "c"], "ab\n"), (["--max-tokens", "4"], "abca\n")])
def test_limits_end_the_text(shell, echo, options, text):
    assert shell("generate", *options, "abcabcabc")[1] == text


def test_tools_and_choice_are_passed_on(shell, echo, tmp_path):
    (tmp_path / "tools.json").write_text(json.dumps([TOOL]))

    shown = shell("generate", "--tools", str(tmp_path / "tools.json"), "--tool-choice", "look", "x")[1]

    assert shown.startswith('<tool_call>\n{"name": "look", "arguments": {}')


def test_a_schema_holds_the_answer(shell, echo, tmp_path):
    (tmp_path / "schema.json").write_text('{"const": [1]}')

    assert shell("generate", "--schema", str(tmp_path / "schema.json"), "x")[1] == "[1]\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tools", "{tmp}/no.json", "x"], "--tools {tmp}/no.json can't be read: No such file or directory"),
        (["--schema", "{tmp}/bad", "x"], "--schema {tmp}/bad is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (["--schema", "{tmp}/list", "x"], "--schema {tmp}/list must hold a JSON Schema, an object"),
        (["--tools", "{tmp}/object", "x"], "--tools {tmp}/object must hold a JSON list of OpenAI tools, at least one"),
        (
            ["--tools", "{tmp}/list", "x"],
            '--tools {tmp}/list: tools[0]: a tool must be {"type": "function", "function": {"name": ...}}, not 1',
        ),
        (["--tool-choice", "required", "x"], "--tool-choice required needs --tools FILE"),
        (
            ["--raw", "--system", "a", "x"],
            "--raw takes the prompt as it is, so it does not go with --system or --tools",
        ),
        (["--temperature", "-1", "x"], "temperature must be in 0..100, not -1.0"),
        (["--tool-format", "hermes", "x"], "--tool-format hermes needs --tools FILE"),
        (["a\udcffb"], r"the prompt holds a lone surrogate, '\udcff' at character 1: not text"),
    ],
)
def test_bad_input_is_one_line_before_a_model_is_loaded(shell, echo, tmp_path, arguments, message):
    for name, text in (("bad", "nope"), ("list", "[1]"), ("object", "{}")):
        (tmp_path / name).write_text(text)
    where = {"{tmp}": str(tmp_path)}

    code, shown, trouble = shell("generate", *(each.replace(*next(iter(where.items()))) for each in arguments))

    assert (code, shown, trouble) == (2, "", f"error: {message.replace('{tmp}', str(tmp_path))}\n")
    assert echo == []


@pytest.mark.parametrize("names", ORDERS, ids=str)
def test_p13_keys_come_in_the_order_of_the_file(shell, echo, tmp_path, names):
    (tmp_path / "schema.json").write_text(json.dumps(strings(*names)))
    document = json.dumps(dict.fromkeys(names, "v"))

    assert shell("generate", "--schema", str(tmp_path / "schema.json"), document)[1] == document + "\n"


@pytest.mark.parametrize("option", ["--schema", "--tools"])
@pytest.mark.parametrize(("schema", "words"), UNENFORCEABLE, ids=str)
def test_p15_what_cannot_be_enforced_is_one_line_and_no_answer(shell, echo, tmp_path, option, schema, words):
    (tmp_path / "file").write_text(json.dumps(schema if option == "--schema" else [as_tool("bad", schema)]))

    code, shown, trouble = shell("generate", option, str(tmp_path / "file"), "x")

    assert (code, shown, trouble.count("\n")) == (2, "", 1)
    assert words.replace(" $", " $" if option == "--schema" else " $.properties.x") in trouble
