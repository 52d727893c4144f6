"""Laws of every tool format: what is written is allowed and read back, and the cuts of the text change nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from engine_doubles import ByteTokenizer
from format_doubles import CALLS, TOOLS, chat, cuts, parse, scribble
from test_rendering import chat as chat_of_template
from test_templates import FOLDER, HISTORY
from toy_vocabulary import EOS, walk

from agentspec.chat.base import Message
from agentspec.chat.calls import Written
from agentspec.chat.formats.base import ToolFormat
from agentspec.chat.formats.registry import FORMATS
from agentspec.config import SamplingParams
from agentspec.errors import GrammarError
from agentspec.grammar.base import Cursor
from agentspec.grammar.tools import closed, read_tools
from agentspec.local.ask import Ask, Asker
from agentspec.segments import Segment

every_format = pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)


def calls_of(message: Message) -> list[tuple[str, object]]:
    return [(call.name, json.loads(call.arguments)) for call in message.tool_calls]


def at_start_only(form: ToolFormat) -> bool:
    return all(opening.at_start for opening in form.openings if opening.enforced)


def before(form: ToolFormat, calls: list[Written]) -> str:
    """Text, then calls; where only an answer's start begins a call, without the text."""
    written = form.write(calls)
    anywhere = any(written.startswith(opening.text) for opening in form.openings if not opening.at_start)
    return ("Sure. <b\n" if anywhere else "") + written


@every_format
@pytest.mark.parametrize("controls", [False, True], ids=["text", "control tokens"])
@pytest.mark.parametrize("choice", ["required", "auto"])
def test_what_is_written_is_allowed_and_read_back(form: ToolFormat, controls: bool, choice: str) -> None:
    made, tokens = chat(form, controls=controls)
    guide = made.guide(TOOLS, choice)
    ids = {name: token for token, name in tokens.special.items() if token > EOS + 1}
    for calls in ([CALLS[0]], [CALLS[1]], CALLS):
        text = before(form, calls) if choice == "auto" else form.write(calls)
        output = made._spelling.tokens(text.encode()) if ids else [*text.encode()]
        cursor = walk(guide, output or [])
        assert cursor is not None, text
        assert cursor.accepting
        message = parse(form, [text])
        assert calls_of(message) == [(call.name, call.arguments) for call in calls]
        assert message.content in ("", "Sure. <b")
        assert not message.broken_calls


@every_format
def test_a_named_tool_is_called_once_and_no_other(form: ToolFormat) -> None:
    made, _ = chat(form)
    for parallel, choice in ((True, "get_time"), (False, "required")):
        guide = made.guide(TOOLS, choice, parallel=parallel)
        once, twice = (walk(guide, [*form.write([CALLS[1]] * count).encode(), EOS]) for count in (1, 2))
        assert (once is not None, twice is None) == (True, True)
    assert walk(made.guide(TOOLS, "get_time"), form.write([CALLS[0]]).encode()) is None


@every_format
@pytest.mark.parametrize("choice", ["auto", "required", "get_time"])
def test_behind_calls_that_are_held_comes_the_end_as_in_every_familys_templates(form: ToolFormat, choice: str) -> None:
    guide, call = chat(form)[0].guide(TOOLS, choice), form.write([CALLS[1]]).encode()
    assert walk(guide, [*call, EOS]) is not None
    assert [walk(guide, [*call, *text]) for text in (b"So", b" So", b"\nSo", b"\n\nSo")] == [None] * 4


@pytest.mark.parametrize("form", ["hermes", "qwen3_coder"])
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_the_newline_between_calls_promises_no_other_one(form: str, choice: str) -> None:
    """A model that ends its line out of habit would otherwise have to call again, and again."""
    calls = FORMATS[form].write([CALLS[1]])
    assert walk(chat(FORMATS[form])[0].guide(TOOLS, choice), [*f"{calls}\n".encode(), EOS]) is not None
    assert parse(FORMATS[form], [f"{calls}\n"]) == parse(FORMATS[form], [calls])


@every_format
@pytest.mark.parametrize("controls", [False, True], ids=["text", "control tokens"])
def test_calls_that_are_asked_for_are_no_prose_from_their_first_token_on(form: ToolFormat, controls: bool) -> None:
    made, tokens = chat(form, controls=controls)
    tools = [tool.definition for tool in TOOLS]
    segments: dict[str, list[Segment]] = {}
    for choice, calls in (("required", CALLS), ("get_time", [CALLS[1]]), ("auto", CALLS)):
        ask = Ask("?", SamplingParams(), {"tools": tools, "tool_choice": choice})
        cursor: Cursor | None = Asker(ByteTokenizer(), tokens, made).read(ask)[0][0].guide.start()
        for token in made._spelling.tokens(form.write(calls).encode()) or ():
            assert cursor is not None
            segments.setdefault(choice, []).append(cursor.segment)
            cursor = cursor.advance(token)
    assert segments["auto"][0] == Segment.PROSE
    assert segments["required"][0] == segments["get_time"][0] == Segment.CALL_FRAME
    assert Segment.PROSE not in segments["required"] + segments["get_time"]


SAID = {"role": "assistant", "content": "Said.", "tool_calls": HISTORY[1]["tool_calls"]}


@pytest.mark.parametrize("template", sorted(FOLDER.glob("*.jinja")), ids=lambda file: file.stem)
def test_what_is_said_in_a_turn_with_calls_comes_before_them(template: Path) -> None:
    made, tokenizer = chat_of_template(template.read_text(encoding="utf-8"))
    text = tokenizer.decode(made.render([HISTORY[0], SAID, HISTORY[2]], TOOLS))
    assert text.index("Oslo") > text.rfind("Said.")


@every_format
@pytest.mark.parametrize(
    "wrong",
    [
        Written("get_weather", {"city": 3}),
        Written("get_weather", {}),
        Written("get_time", {"zone": "x"}),
        Written("order", {"size": "L"}),
        Written("nobody", {}),
    ],
    ids=str,
)
def test_a_call_that_fits_no_tool_may_not_be_written(form: ToolFormat, wrong: Written) -> None:
    if form.marks.raw_value and wrong.arguments == {"city": 3}:
        pytest.skip("a string is written as it is, so 3 is a string there")
    made, _ = chat(form)
    assert walk(made.guide(TOOLS, "required"), [*form.write([wrong]).encode(), EOS]) is None
    if form.tool_openings(TOOLS) and wrong.name == "nobody":
        return  # what does not begin with a tool's name is text
    assert walk(made.guide(TOOLS, "auto"), [*form.write([wrong]).encode(), EOS]) is None


@every_format
@pytest.mark.parametrize("reasons", [False, True], ids=["", "reasons"])
def test_what_the_grammar_allows_is_read_as_it_is_meant(form: ToolFormat, reasons: bool) -> None:
    made, tokens = chat(form)
    made.__dict__["reasoning"] = form.reasoning if reasons else None
    guide, whole = made.guide(TOOLS, "required"), 0
    schemas = {tool.name: closed(tool.parameters) for tool in TOOLS}
    for seed in range(60):
        text = scribble(guide, tokens, form, seed)
        if text is None:
            continue
        whole += 1
        message = parse(form, [text])
        assert message.tool_calls, text
        assert (message.content, message.broken_calls) == ("", ()), text
        for name, arguments in calls_of(message):
            jsonschema.validate(arguments, schemas[name])
    assert whole >= 20


def samples(form: ToolFormat) -> list[str]:
    """Answers of all kinds, whole, cut off and malformed."""
    two, odd = form.write(CALLS[:2]), form.write([CALLS[2]])
    unknown = form.write([Written("nobody", {"a": [1, None]})])
    opening = next(each.text for each in form.openings)
    thoughts = f"{form.reasoning.open}\nHm, {opening}?\n\n{form.reasoning.close}\n\n" if form.reasoning else ""
    return [
        "a < b and <tool is not a tag <tool_cal",
        "",
        " \n ",
        two,
        before(form, CALLS[:2]),
        thoughts + two,
        thoughts + "So 4.",
        thoughts[:-9],
        odd + "\n\nafter\n",
        unknown,
        unknown + two,
        two.replace("}", "]", 1),
        two.replace('"', "'"),
        two.replace("get_weather", ""),
        opening + " oops",
        opening + opening + two,
        '{"a": 1}',
        '{"name": "Bob", "age": 3}',
        *(two[:size] for size in range(0, len(two), 7)),
    ]


@every_format
def test_the_message_does_not_depend_on_the_cuts(form: ToolFormat) -> None:
    for text in samples(form):
        whole = parse(form, [text])
        for parts in cuts(text):
            assert parse(form, parts) == whole, (text, parts)


@every_format
def test_a_call_that_was_cut_off_is_never_complete_and_no_text_is_lost(form: ToolFormat) -> None:
    text = form.write([CALLS[0]])
    for size in range(len(text)):
        message = parse(form, [text[:size]])
        assert calls_of(message) in ([], [(CALLS[0].name, CALLS[0].arguments)])
        shown = len(message.content) + sum(len(call.name + call.arguments) for call in message.broken_calls)
        assert message.tool_calls or shown or size < 40, text[:size]


@every_format
def test_the_beginning_of_a_marker_behind_a_call_is_no_text_where_a_limit_cut_it(form: ToolFormat) -> None:
    text = form.write(CALLS[:2])
    for length in range(len(text)):
        whole, letters = (parse(form, parts, cut=True) for parts in ([text[:length]], text[:length]))
        assert whole == letters
        assert whole.content == "" or not whole.tool_calls, text[:length]


@every_format
def test_thoughts_are_apart_from_the_answer(form: ToolFormat) -> None:
    if form.reasoning is None:
        pytest.skip("no markers")
    start, close = form.reasoning.open, form.reasoning.close
    call = form.write([CALLS[0]])
    for text, opened in ((f"{start}\nHm.\n\nSo.\n{close}\n\n{call}", False), (f"Hm.\n\nSo.\n{close}\n\n{call}", True)):
        message = parse(form, [text], opened=opened)
        assert (message.reasoning, message.content) == ("Hm.\n\nSo.", "")
        assert calls_of(message) == [(CALLS[0].name, CALLS[0].arguments)]
        assert message.wire["reasoning_content"] == "Hm.\n\nSo."
    made, _ = chat(form)
    made.__dict__["reasoning"] = replace(form.reasoning)
    for opened in (False, True):
        begun = "" if opened else start
        guide = made.guide(TOOLS, "required", opened=opened)
        assert walk(guide, [*f"{begun}Hm{close}{form.reasoning.between[-1]}{call}".encode(), EOS]) is not None
        assert walk(guide, [*f"{begun}Hm{close}".encode(), EOS]) is None
        assert walk(guide, [*f"{begun}Hm".encode(), EOS]) is None
        assert walk(guide, f"{begun}Hm{close}No".encode()) is None
        assert (walk(guide, [*call.encode(), EOS]) is not None) == (not opened)


REFUSED = "tool 'edit': its parameters can't be enforced: 'replace-all' at $.properties: an argument's name must be one"


@pytest.mark.traces
@every_format
def test_every_recorded_set_of_tools_is_enforced_or_refused_by_tool_keyword_and_path(
    form: ToolFormat, shared: Path
) -> None:
    rows = [
        json.loads(line)
        for file in sorted((shared / "traces/public/normalized").glob("*.jsonl"))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    sets, refused = {json.dumps(row["tools"]) for row in rows if row.get("tools")}, []
    assert len(sets) >= 10
    made, _ = chat(form)
    for tools in map(read_tools, map(json.loads, sorted(sets))):
        try:
            assert made.guide(tools, "required").start().mask() is not None
            assert made.guide(tools, "auto").start().mask() is None
        except GrammarError as error:
            refused.append(str(error).partition(" in Python")[0])
    assert refused == ([REFUSED] if form.name in ("gemma", "llama_pythonic") else [])  # the rest enforce every one


DEEP = "[" * 3000 + "]" * 3000
HEAD_FIRST = f'{{"name": "move", "arguments": {{"to": {DEEP}}}}}'
HEAD_LAST = f'{{"arguments": {{"to": {DEEP}}}, "name": "move"}}'


@pytest.mark.parametrize(
    ("form", "before", "call", "after"),
    [
        ("hermes", "<tool_call>\n", HEAD_FIRST, "\n</tool_call>"),
        ("hermes", "<tool_call>\n", HEAD_LAST, "\n</tool_call>"),
        ("phi4", "<|tool_call|>[", HEAD_LAST, "]<|/tool_call|>"),
        ("llama3_json", "", HEAD_FIRST.replace("arguments", "parameters"), ""),
        ("gemma", "```json\n", HEAD_FIRST, "\n```"),
    ],
)
def test_a_call_that_is_nested_too_deep_to_be_read_is_broken_and_not_lost(
    form: str, before: str, call: str, after: str
) -> None:
    message = parse(FORMATS[form], [before, call, after])
    assert message.tool_calls == ()
    assert [DEEP in each.arguments for each in message.broken_calls] == [True]


def test_a_raw_value_that_is_nested_too_deep_to_be_read_is_text() -> None:
    text = f"<tool_call>\n<function=move>\n<parameter=to>\n{DEEP}\n</parameter>\n</function>\n</tool_call>"
    assert json.loads(parse(FORMATS["qwen3_coder"], [text]).tool_calls[0].arguments) == {"to": DEEP}
