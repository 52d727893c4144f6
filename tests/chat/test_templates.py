"""The format is told from the chat template, and each template shows calls as its model knows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from format_doubles import TOOLS, tool
from test_rendering import chat

from agentspec.chat.chat import Chat
from agentspec.chat.formats.registry import FORMATS
from agentspec.errors import ConfigError
from agentspec.grammar.tools import read_tools

FOLDER = Path(__file__).parent / "templates"
TEMPLATES = {  # what is chosen, and whether the model thinks
    "chatml": ("plain", False),
    "qwen2": ("hermes", False),
    "qwen3": ("hermes", True),
    "begun_thoughts": ("hermes", True),
    "qwen3_coder": ("qwen3_coder", False),
    "llama3": ("llama3_json", False),
}
HISTORY = [
    {"role": "user", "content": "Weather?"},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "Ask.",
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city": "Oslo", "days": 2}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
]
SHOWN = {
    "hermes": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}\n</tool_call>',
    "plain": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}\n</tool_call>',
    "qwen3_coder": "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
    "<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
    "llama3_json": '\n\n{"name": "get_weather", "parameters": {"city": "Oslo", "days": 2}}<|eot_id|>',
}


def fixture(name: str) -> Chat:
    return chat((FOLDER / f"{name}.jinja").read_text())[0]


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_format_and_thoughts_are_told_from_the_template(name: str) -> None:
    made = fixture(name)
    assert (made.form.name, made.reasoning is not None) == TEMPLATES[name]
    assert made.opened(made.render([{"role": "user", "content": "hi"}])) == (name == "begun_thoughts")


@pytest.mark.parametrize("name", TEMPLATES)
def test_calls_and_results_are_shown_as_the_model_writes_them(name: str) -> None:
    made, tokenizer = chat((FOLDER / f"{name}.jinja").read_text())
    text = tokenizer.decode(made.render(HISTORY, TOOLS))
    assert SHOWN[made.form.name] in text
    assert text.index("Weather?") < text.index("Oslo") < text.rindex("rain")
    assert ("<think>\nAsk.\n</think>" in text) == TEMPLATES[name][1]


def test_a_template_that_takes_one_call_gets_several_as_text() -> None:
    made, tokenizer = chat((FOLDER / "llama3.jinja").read_text())
    twice = [HISTORY[0], {**HISTORY[1], "tool_calls": HISTORY[1]["tool_calls"] * 2}, HISTORY[2]]  # type: ignore[operator]
    call = '{"name": "get_weather", "parameters": {"city": "Oslo", "days": 2}}'
    assert f"{call}; {call}<|eot_id|>" in tokenizer.decode(made.render(twice, TOOLS))


def test_a_template_that_wants_arguments_as_text_gets_text() -> None:
    template = (
        (FOLDER / "qwen2.jinja").read_text().replace("call.function.arguments | tojson", "call.function.arguments")
    )
    made, tokenizer = chat(template)
    assert made.form.name == "hermes"
    assert SHOWN["hermes"] in tokenizer.decode(made.render(HISTORY, TOOLS))
    broken = [HISTORY[0], {**HISTORY[1], "tool_calls": [{"function": {"name": "f", "arguments": '{"a":'}}]}]
    assert json.dumps('{"a":') in tokenizer.decode(made.render(broken, TOOLS))


def test_a_format_can_be_named() -> None:
    _, tokenizer = chat((FOLDER / "qwen2.jinja").read_text())
    made = fixture("qwen2")
    for name, form in FORMATS.items():
        named = Chat(tokenizer, made._vocabulary, tool_format=name)
        assert named.form is form
        text = tokenizer.decode(named.render(HISTORY, TOOLS))
        assert ("To call a function, write" in text) == (name != "hermes")
    with pytest.raises(ConfigError, match="no tool format is called 'xml'; there are: hermes, qwen3_coder,"):
        Chat(tokenizer, made._vocabulary, tool_format="xml")


def test_thoughts_that_the_prompt_began_are_free_and_the_answer_behind_them_is_held() -> None:
    made = fixture("begun_thoughts")
    call = SHOWN["hermes"]
    guide = made.guide(read_tools([tool("get_weather", ["city"], city={}, days={})]), "required", opened=True)
    cursor = guide.start()
    assert not cursor.accepting
    for token in f"So <tool_call>?</think>\n\n{call}".encode():
        following = cursor.advance(made._spelling.tokens(bytes([token]))[0])  # type: ignore[index]
        assert following is not None
        cursor = following
    assert cursor.accepting
