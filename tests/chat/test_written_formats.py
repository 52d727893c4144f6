"""Llama's Python calls, Gemma's fences, gpt-oss' channels: told from templates, read, enforced, and their segments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from engine_doubles import ByteTokenizer
from format_doubles import TOOLS, chat, cuts, parse
from test_rendering import chat as chat_of_template
from test_segmenter import outline
from test_templates import HISTORY
from toy_vocabulary import EOS, ids, walk

from agentspec.chat.base import MessageBuilder
from agentspec.chat.chat import Chat
from agentspec.chat.formats.registry import FORMATS
from agentspec.config import SamplingParams
from agentspec.grammar.base import Guide
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.local.ask import Ask, Asker, Prompt
from agentspec.segmenter import Segmenter
from agentspec.segments import Segment

FOLDER = Path(__file__).parent / "templates"
CHANNEL, ROLE = "<|channel|>commentary to=functions.get_time", " to=functions.get_time<|channel|>commentary"
THOUGHT, NEXT = "<|channel|>analysis<|message|>Hm<|end|>", "<|start|>assistant"
PLAN = "<|channel|>commentary<|message|>Plan.<|end|>"
FINAL = "<|channel|>final<|message|>"
JSON = "<|constrain|>json<|message|>{}"
SHOWN = {
    "harmony": (
        "harmony",
        "<|start|>assistant<|channel|>analysis<|message|>Ask.<|end|><|start|>assistant to=functions.get_weather"
        '<|channel|>commentary json<|message|>{"city": "Oslo", "days": 2}<|call|><|start|>functions.get_weather',
    ),
    "llama_pythonic": ("llama_pythonic", "<|header_end|>\n\n[get_weather(city='Oslo', days=2)]<|eot|>"),
    "gemma": ("gemma", "<start_of_turn>model\n```tool_code\nget_weather(city='Oslo', days=2)\n```<end_of_turn>"),
    "gemma_tools": ("gemma", '<start_of_turn>model\n```tool_code\nget_weather(city="Oslo", days=2)\n```<end_of_turn>'),
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_format_is_told_from_the_template_which_shows_calls_as_the_model_knows_them(name: str) -> None:
    made, tokenizer = chat_of_template((FOLDER / f"{name}.jinja").read_text())
    form, shown = SHOWN[name]
    assert (made.form.name, made.reasoning is not None) == (form, name == "harmony")
    text = tokenizer.decode(made.render(HISTORY, TOOLS))
    assert shown in text
    assert text.index("Weather?") < text.index("Oslo") < text.rindex("rain")
    assert "write_file" in text
    assert ("To call a function, write" in text) == (name == "gemma")


def test_each_of_several_calls_has_a_turn_of_its_own_before_its_result() -> None:
    made, tokenizer = chat_of_template((FOLDER / "harmony.jinja").read_text())
    calls = [{"id": str(i), "type": "function", "function": {"name": f"f{i}", "arguments": "{}"}} for i in range(3)]
    said = {"role": "assistant", "content": "Look.", "reasoning_content": "Ask.", "tool_calls": calls}
    results = [{"role": "tool", "tool_call_id": str(i), "content": f"r{i}"} for i in (1, 0)]
    text = tokenizer.decode(made.render([HISTORY[0], said, *results, {"role": "user", "content": "u"}], TOOLS))
    order = re.findall(r"f\d(?=<\|channel\|>)|Ask\.\n\nLook\.|(?<=functions\.)f\d(?= to=)|r\d|user<\|message\|>u", text)
    assert order == ["f1", "f1", "r1", "Ask.\n\nLook.", "f0", "f0", "r0", "f2", "user<|message|>u"]


READ = [  # format, text, thoughts, text that is shown, calls
    ("harmony", f"{THOUGHT}{NEXT}{FINAL}Hi.<|return|>", "Hm", "Hi.", []),
    ("harmony", f"{FINAL}Hi.", "", "Hi.", []),
    ("harmony", f"{THOUGHT}{NEXT}{CHANNEL} {JSON}<|call|>", "Hm", "", [("get_time", "{}")]),
    ("harmony", f"{THOUGHT}{NEXT}{CHANNEL}{JSON}", "Hm", "", [("get_time", "{}")]),
    ("harmony", f"{THOUGHT}{NEXT}{ROLE} json<|message|>{{}}<|call|>", "Hm", "", [("get_time", "{}")]),
    ("harmony", f"{ROLE}<|message|>{{}}", "", "", [("get_time", "{}")]),
    ("harmony", f"{THOUGHT}{NEXT}{THOUGHT}{NEXT}{PLAN}{NEXT}{CHANNEL} {JSON}", "HmHm", "Plan.", [("get_time", "{}")]),
    ("harmony", f"{PLAN}{NEXT}{ROLE} {JSON}<|call|>", "", "Plan.", [("get_time", "{}")]),
    ("harmony", "<|channel|>analysis to=functions.get_time code<|message|>{}<|call|>", "", "", [("get_time", "{}")]),
    ("harmony", f"{CHANNEL} {JSON}<|end|>{NEXT}{FINAL}Done", "", "Done", [("get_time", "{}")]),
    ("llama_pythonic", "[get_time()]", "", "", [("get_time", "{}")]),
    (
        "llama_pythonic",
        "<|python_start|>[get_time(), order(size='M')]<|python_end|>",
        "",
        "",
        [("get_time", "{}"), ("order", '{"size": "M"}')],
    ),
    ("llama_pythonic", " [ get_time ( ) ,\n get_time()] ", "", "", [("get_time", "{}")] * 2),
    ("llama_pythonic", "[1] says (so)", "", "[1] says (so)", []),
    ("llama_pythonic", "[nobody(a=1)]", "", "[nobody(a=1)]", []),
    ("llama_pythonic", "See [get_time()]", "", "See [get_time()]", []),
    (
        "gemma",
        'Ok.\n```tool_code\nget_time()\norder(size="M")\n```\n',
        "",
        "Ok.",
        [("get_time", "{}"), ("order", '{"size": "M"}')],
    ),
    ("gemma", '```json\n{"name": "order", "parameters": {"size": "M"}}\n```', "", "", [("order", '{"size": "M"}')]),
    ("gemma", '```json\n{"name": "Bob", "age": 3}\n```', "", '```json\n{"name": "Bob", "age": 3}\n```', []),
    (
        "gemma",
        "```json\n[1]\n``` or ```python\nget_time()\n```",
        "",
        "```json\n[1]\n``` or ```python\nget_time()\n```",
        [],
    ),
]


@pytest.mark.parametrize(("name", "text", "thoughts", "content", "calls"), READ)
def test_each_variant_is_read_however_it_is_cut(
    name: str, text: str, thoughts: str, content: str, calls: list[tuple[str, str]]
) -> None:
    for parts in ([text], list(text), [text[:20], text[20:]]):
        message = parse(FORMATS[name], parts)
        assert (message.reasoning, message.content, message.broken_calls) == (thoughts, content, ())
        assert [(call.name, call.arguments) for call in message.tool_calls] == calls


BROKEN = [  # format, text, whole calls, the broken one
    ("harmony", f"{CHANNEL} {JSON[:-1]}", 0, ("get_time", "{")),
    ("harmony", "<|channel|>commentary to=functions.get_t", 0, ("", "get_t")),
    ("harmony", f"{CHANNEL} <|constrain|>json<|message|>oops<|call|>", 0, ("", f"get_time {JSON[:-2]}oops")),
    ("llama_pythonic", "[get_time(), order(size='M", 1, ("order", '{"size": "M')),
    ("llama_pythonic", "[order('M')]", 0, ("order", "")),
    ("llama_pythonic", "[order(size=M)]", 0, ("order", '{"size": ')),
    ("gemma", "```tool_code\nget_time()\norder(size=", 1, ("order", '{"size": ')),
    ("gemma", "```tool_code\nimport os\n```", 0, ("", "import os")),
]


@pytest.mark.parametrize(("name", "text", "whole", "broken"), BROKEN)
def test_what_is_malformed_or_cut_off_is_reported_and_the_calls_before_it_stand(
    name: str, text: str, whole: int, broken: tuple[str, str]
) -> None:
    message = parse(FORMATS[name], [text])
    assert len(message.tool_calls) == whole
    assert [(call.name, call.arguments) for call in message.broken_calls] == [broken]


def gpt_oss() -> Chat:
    """With the model's control tokens, two of which end its answers."""
    names = ["return", "call", "end", "start", "channel", "message", "constrain"]
    special = {256 + index: f"<|{name}|>" for index, name in enumerate(names)}
    text = [bytes([byte]) for byte in range(256)] + [b""] * len(names)
    return Chat(ByteTokenizer(), Vocabulary(text, special=special, eos=[256, 257]), tool_format="harmony")


AFTER = [  # what comes before the call, and whether it may under "required"
    ("", True),
    (THOUGHT + NEXT, True),
    (THOUGHT + NEXT + THOUGHT + NEXT, True),
    (PLAN + NEXT, False),
    (THOUGHT + NEXT + PLAN + NEXT, False),
    (FINAL + "Hi<|end|>" + NEXT, False),
]


@pytest.mark.parametrize(("before", "required"), AFTER)
def test_a_call_in_channels_ends_with_an_end_token_and_may_name_its_tool_in_either_place(
    before: str, required: bool
) -> None:
    made = gpt_oss()
    for head in (f"{CHANNEL} {JSON}", f"{CHANNEL}{JSON}", f"{ROLE} {JSON}", f"{ROLE} json<|message|>{{}}"):
        tokens = made._spelling.tokens((before + head).encode())
        assert tokens is not None
        for choice, may in (("auto", True), ("get_time", required), ("required", required)):
            cursor = walk(made.guide(TOOLS, choice), tokens)
            assert (cursor is not None) == may, (choice, head)
            if cursor is not None:
                assert ids(cursor.mask(), 263) == [256, 257]
        none = walk(made.guide(TOOLS, "none"), tokens)
        assert none is None
    wrong = made._spelling.tokens(f"{before}<|channel|>commentary to=functions.nobody".encode())
    assert walk(made.guide(TOOLS, "auto"), wrong or ()) is None


DOCUMENT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
AROUND = [  # what comes before a document that the answer is held to, and whether it may
    (FINAL, True),
    (FINAL.replace("<|m", " <|constrain|>json<|m"), True),
    (THOUGHT + NEXT + FINAL, True),
    (THOUGHT + NEXT + THOUGHT + NEXT + FINAL, True),
    ("", False),
    (THOUGHT + NEXT, False),
    (THOUGHT + FINAL.replace("final", "commentary"), False),
]


def held_to_a_document(made: Chat, prompt: Prompt) -> Guide:
    asker = Asker(ByteTokenizer(), made._vocabulary, made)
    return asker.read(Ask(prompt, SamplingParams(), {"json_schema": DOCUMENT}))[0][0].guide


@pytest.mark.parametrize(("before", "may"), AROUND)
def test_a_document_stands_in_the_final_channel_behind_thoughts_that_are_free(before: str, may: bool) -> None:
    made = gpt_oss()
    guide, head = held_to_a_document(made, [{"role": "user", "content": "?"}]), made._spelling.tokens(before.encode())
    assert head is not None
    assert (walk(guide, [*head, *b"{"]) is not None) == may
    if may:
        begun, done = walk(guide, head), walk(guide, [*head, *b'{"n": 1}'])
        assert begun is not None
        assert begun.segment == Segment.JSON_KEY
        assert done is not None
        assert ids(done.mask(), 263) == [256, 257]


def test_what_goes_on_from_a_text_has_no_frames() -> None:
    assert walk(held_to_a_document(gpt_oss(), "?"), b'{"n": 1}') is not None


def test_frames_are_hidden_where_there_are_no_tools() -> None:
    parser, builder = gpt_oss().parser(), MessageBuilder()
    builder.add([*parser.feed(f"{THOUGHT}{NEXT}{FINAL}So [f()] or to=functions.f."), *parser.finish()])
    message = builder.message()
    assert (message.reasoning, message.content) == ("Hm", "So [f()] or to=functions.f.")


def test_a_list_is_held_to_the_tools_only_if_it_begins_as_a_call_of_one() -> None:
    made, _ = chat(FORMATS["llama_pythonic"])
    for text, allowed in (("[1, 2]", True), ("[get_time(1)]", False), ("[get_time()]", True), ("[get_times(1)]", True)):
        assert (walk(made.guide(TOOLS, "auto"), [*text.encode(), EOS]) is not None) == allowed
    assert walk(made.guide(TOOLS, "none"), b"[get_time()]") is not None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llama_pythonic", "P|[|T|f(|K|a=|N|'|S|x]'|K|, l=|N|[1]|K|)|F|,|T| g(|K|)|F|]|E"),
        ("llama_pythonic", "P|<|python_start|>[|T|f(|K|code=|N|'|C|x'|K|)|F|]|E"),
        ("gemma", "P|Ok\n```|C|tool_code\n|T|f(|K|a=|N|'|S|x'|K|)|F|\n|T|g(|K|)|F|\n|T|```|E| s|P|o|P"),
        ("gemma", "P|```|C|python\nf(a='x')\n```|P| so|P"),
        (
            "harmony",
            f"P|<|channel|>analysis<|message|>|R|Hm<|end|>|P|{NEXT}<|channel|>commentary to=functions.|T|f |F|"
            '<|constrain|>json<|message|>{|K|"code": |N|"|C|x"|K|}|F|<|call|>|E',
        ),
        ("harmony", 'P| to=functions.|T|f<|F||channel|>commentary json<|message|>{|K|"n": |N|1}|F|<|call|>|E'),
    ],
)
def test_every_character_of_a_call_has_its_segment(name: str, expected: str) -> None:
    form = FORMATS[name]
    reasoning = (form.reasoning.open, form.reasoning.close) if form.reasoning else ("", "")
    runs = re.findall(r"[A-Z]\|(.*?)\|(?=[A-Z]\||E$|P$)", expected, re.DOTALL)
    assert outline(Segmenter(calls=form.marks, reasoning=reasoning), "".join(runs)) == expected


def test_where_a_broken_call_ends_does_not_depend_on_the_cuts() -> None:
    text = "<|channel|>analysis to=functions.x<|call|>hello there"
    for parts in cuts(text):
        message = parse(FORMATS["harmony"], parts)
        assert (message.content, [call.arguments for call in message.broken_calls]) == ("hello there", ["x"])
