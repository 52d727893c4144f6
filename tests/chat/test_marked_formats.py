"""Calls of Mistral, DeepSeek, Phi-4-mini, Functionary: told from templates, shown, and read in every variant."""

# ruff: noqa: RUF001 (DeepSeek spells its markers so)

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from engine_doubles import ByteTokenizer
from format_doubles import CALLS, TOOLS, chat, cuts, parse
from test_rendering import chat as chat_of_template
from test_segmenter import outline
from test_templates import HISTORY
from toy_vocabulary import EOS, MERGING, walk

from agentspec.chat.chat import Chat
from agentspec.chat.formats.registry import FORMATS
from agentspec.segmenter import Segmenter

FOLDER = Path(__file__).parent / "templates"
NAMES = ("mistral", "mistral_named", "deepseek", "deepseek_v31", "phi4", "functionary")
ID = "74196fe72"  # the first characters of call_1's hash
BEGIN, END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
V3 = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{}\n```<｜tool▁call▁end｜>".format
V31 = "<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{}<｜tool▁call▁end｜>".format
OSLO = '{"city": "Oslo", "days": 2}'
TEMPLATES = {  # what is chosen, whether the model thinks, and how the call is shown
    "mistral": ("mistral", False, f'[TOOL_CALLS] [{{"name": "get_weather", "arguments": {OSLO}, "id": "{ID}"}}]</s>'),
    "mistral_named": ("mistral_named", True, f"[THINK]Ask.[/THINK][TOOL_CALLS]get_weather[ARGS]{OSLO}</s>"),
    "deepseek": ("deepseek", True, BEGIN + V3(OSLO) + END),
    "deepseek_r1": ("deepseek", True, BEGIN + V3(OSLO) + END),
    "deepseek_v31": ("deepseek_v31", True, BEGIN + V31(OSLO) + END),
    "phi4": ("phi4", False, f'<|tool_call|>[{{"name": "get_weather", "arguments": {OSLO}}}]<|/tool_call|>'),
    "phi4_calls": ("phi4", False, f'<|tool_call|>{{"name": "get_weather", "arguments": {OSLO}}}<|/tool_call|>'),
    "functionary": ("functionary", False, f"<function=get_weather>{OSLO}</function><|eom_id|>"),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_format_is_told_from_the_template_which_shows_calls_as_the_model_knows_them(name: str) -> None:
    made, tokenizer = chat_of_template((FOLDER / f"{name}.jinja").read_text())
    form, thinks, shown = TEMPLATES[name]
    assert (made.form.name, made.reasoning is not None) == (form, thinks)
    text = tokenizer.decode(made.render(HISTORY, TOOLS))
    assert shown in text
    assert text.index("Weather?") < text.index("Oslo") < text.rindex("rain")
    assert "write_file" in text
    assert made.opened(made.render([{"role": "user", "content": "hi"}])) == (name == "deepseek_r1")


def test_a_result_keeps_the_id_of_its_call_when_ids_must_have_nine_characters() -> None:
    made, tokenizer = chat_of_template((FOLDER / "mistral.jinja").read_text())
    assert f'"call_id": "{ID}"' in tokenizer.decode(made.render(HISTORY, TOOLS))
    nine = [HISTORY[0], {**HISTORY[1], "tool_calls": [{**HISTORY[1]["tool_calls"][0], "id": "Ab3456789"}]}]  # type: ignore[index,dict-item]
    assert '"id": "Ab3456789"' in tokenizer.decode(made.render(nine, TOOLS))


def test_a_call_without_arguments_may_be_split_as_it_is_with_the_call_behind_it() -> None:
    made = Chat(ByteTokenizer(), MERGING, tool_format="phi4")
    tokens = MERGING.encode(FORMATS["phi4"].write([CALLS[1], CALLS[0]]))
    assert (MERGING.tokens.index(b"{}"), MERGING.tokens.index(b"},")) in pairwise(tokens)
    for choice in ("required", "auto"):
        assert walk(made.guide(TOOLS, choice), tokens) is not None


def test_ids_between_name_and_arguments_do_not_hide_a_format() -> None:
    template = (FOLDER / "mistral_named.jinja").read_text().replace("+ '[ARGS]'", "+ '[CALL_ID]' + call.id + '[ARGS]'")
    assert chat_of_template(template)[0].form.name == "mistral_named"


WEATHER, TIME = ("get_weather", '{"city": "Oslo"}'), ("get_time", "{}")
READ = [
    ("mistral", '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "a1b2c3d4e"}]', [WEATHER]),
    (
        "mistral",
        '[TOOL_CALLS][{"name": "get_time", "arguments": {}},\n{"name": "get_time", "arguments": {}}]',
        [TIME] * 2,
    ),
    ("mistral", "[TOOL_CALLS]get_time[ARGS]{}", [TIME]),
    ("mistral_named", '[TOOL_CALLS][{"name": "get_time", "arguments": {}}]', [TIME]),
    ("mistral_named", '[TOOL_CALLS]get_time[ARGS]{}[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}', [TIME, WEATHER]),
    ("mistral_named", '[TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{"city": "Oslo"}', [WEATHER]),
    ("mistral_named", "[TOOL_CALLS] get_time {}", [TIME]),
    ("deepseek", BEGIN + V3(WEATHER[1]) + "\n" + V3(WEATHER[1]) + END, [WEATHER] * 2),
    ("deepseek", BEGIN + V31(WEATHER[1]) + END, [WEATHER]),
    ("deepseek_v31", BEGIN + V3(WEATHER[1]) + END, [WEATHER]),
    ("deepseek_v31", V31(WEATHER[1]), [WEATHER]),
    ("phi4", '<|tool_call|>{"name": "get_time", "arguments": {}}<|/tool_call|>' * 2, [TIME] * 2),
    ("phi4", '<|tool_call|>[{"type": "function", "function": {"name": "get_time", "arguments": {}}}]', [TIME]),
    (
        "functionary",
        '<function=get_weather> {"city": "Oslo"} </function>\n<function=get_time>{}</function>',
        [WEATHER, TIME],
    ),
]


@pytest.mark.parametrize(("name", "text", "expected"), READ)
def test_each_variant_is_read_however_it_is_cut(name: str, text: str, expected: list[tuple[str, str]]) -> None:
    for parts in ([text], *cuts(text, random_ones=10)):
        message = parse(FORMATS[name], parts)
        assert [(call.name, call.arguments) for call in message.tool_calls] == expected
        assert (message.content, message.broken_calls) == ("", ())


BROKEN = [
    ("mistral", '[TOOL_CALLS][{"name": "get_time", "arguments": {}}, {"name": "get_weather", "argum', 1),
    ("mistral", "[TOOL_CALLS][]", 0),
    ("mistral_named", '[TOOL_CALLS]get_time[ARGS]{}[TOOL_CALLS]get_weather[ARGS]{"city": "Os', 1),
    ("mistral_named", "[TOOL_CALLS]get_time[ARGS]{]", 0),
    ("deepseek", BEGIN + V3("{}") + "\n" + V3("{}")[:60], 1),
    ("deepseek_v31", BEGIN + V31('{"city": Oslo}') + END, 0),
    ("deepseek_v31", BEGIN + END, 0),
    ("phi4", '<|tool_call|>[{"name": "get_time", "arguments": {}}, oops]<|/tool_call|>', 1),
    ("functionary", '<function=get_time>{}</function><function=get_weather>{"city": ', 1),
    ("functionary", "<function=get_time></function>", 0),
]


@pytest.mark.parametrize(("name", "text", "whole"), BROKEN)
def test_what_is_malformed_or_cut_off_is_reported_and_the_calls_before_it_stand(
    name: str, text: str, whole: int
) -> None:
    message = parse(FORMATS[name], [text])
    assert (len(message.tool_calls), len(message.broken_calls), message.content) == (whole, 1, "")


ALLOWED = [
    ("mistral", '[TOOL_CALLS] [{"name": "get_time", "arguments": {}, "id": "a1b2c3d4e"}]', True),
    ("mistral", '[TOOL_CALLS][{"name": "get_time", "arguments": {}, "id": "a1b2c3d4"}]', False),
    ("mistral", "[TOOL_CALLS][]", False),
    ("mistral_named", "[TOOL_CALLS]get_time[CALL_ID]a1b2c3d4e[ARGS]{}[TOOL_CALLS]get_time[ARGS]{}", True),
    ("mistral_named", "[TOOL_CALLS]get_time{}", False),
    ("phi4", '<|tool_call|>{"name": "get_time", "arguments": {}}<|/tool_call|>' * 2, True),
    ("deepseek", BEGIN + V31("{}") + END, False),
]


@pytest.mark.parametrize(("name", "text", "allowed"), ALLOWED)
def test_models_write_the_variant_that_they_know_and_no_other(name: str, text: str, allowed: bool) -> None:
    guide = chat(FORMATS[name])[0].guide(TOOLS, "required")
    assert (walk(guide, [*text.encode(), EOS]) is not None) == allowed


@pytest.mark.parametrize("controls", [False, True], ids=["text", "control tokens"])
@pytest.mark.parametrize("name", NAMES)
def test_where_no_call_is_allowed_none_is_begun(name: str, controls: bool) -> None:
    made, _ = chat(FORMATS[name], controls=controls)
    opening = FORMATS[name].openings[0].text
    tokens = made._spelling.tokens(f"Well {opening}".encode())
    assert tokens is not None
    guide = made.guide(TOOLS, "none")
    assert walk(guide, tokens[:-1]) is not None
    assert walk(guide, tokens) is None


OUTLINES = {
    "mistral": 'P|Ok [TOOL_CALLS]|F|[{"name": "|T|f"|F|, "arguments": {|K|"path": |N|"|S|a.py"|K|}|F|, "id": "|S|a1b2'
    'c3d4e"|F|}, {"name": "|T|g"|F|, "arguments": {|K|}|F|}]|E',
    "mistral_named": 'P|Ok [TOOL_CALLS]|T|f[|F|CALL_ID]a1b2c3d4e[ARGS]{|K|"code": |N|"|C|x = 1"|K|}|E',
    "deepseek": 'P|Ok <｜tool▁calls▁begin｜>|F|<｜tool▁call▁begin｜>function<｜tool▁sep｜>|T|f\n|F|```json\n{|K|"n": '
    "|N|-1}|F|\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>|E",
    "deepseek_v31": "P|Ok <｜tool▁calls▁begin｜>|F|<｜tool▁call▁begin｜>|T|f<|F|｜tool▁sep｜>{|K|}|F|"
    "<｜tool▁call▁end｜><｜tool▁call▁begin｜>|T|g<|F|｜tool▁sep｜>{|K|}|F|<｜tool▁call▁end｜><｜tool▁calls▁end｜>|E",
    "phi4": 'P|Ok <|tool_call|>|F|[{"name": "|T|f"|F|, "arguments": {|K|"n": |N|-1}|F|}]<|/tool_call|>|E',
    "functionary": 'P|Ok <function=|T|f>|F|{|K|"n": |N|[1]|K|}|F|</function>|E',
}


@pytest.mark.parametrize("name", OUTLINES)
def test_every_character_of_a_call_has_its_segment(name: str) -> None:
    expected = OUTLINES[name]
    runs = re.findall(r"[A-Z]\|(.*?)\|(?=[A-Z]\||E$)", expected, re.DOTALL)
    assert outline(Segmenter(calls=FORMATS[name].marks), "".join(runs)) == expected
