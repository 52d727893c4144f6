"""What tests of tool formats share: tools, calls, parsing in pieces, and text that a grammar allows."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from typing import Any

from engine_doubles import ByteTokenizer
from toy_vocabulary import TOKENS, TV, ids

from agentspec.chat.base import Message, MessageBuilder
from agentspec.chat.calls import Written
from agentspec.chat.chat import Chat
from agentspec.chat.formats.base import ToolFormat
from agentspec.chat.parser import AnswerParser
from agentspec.grammar.base import Guide
from agentspec.grammar.tools import Tool, read_tools
from agentspec.grammar.vocabulary import Vocabulary


def tool(name: str, required: Iterable[str] = (), **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": "x", "parameters": parameters}}


TOOLS = read_tools(
    [
        tool("get_weather", ["city"], city={"type": "string"}, days={"type": "integer"}, wet={"type": "boolean"}),
        tool("get_time"),
        tool("write_file", ["path", "text"], path={"type": "string"}, text={"type": "string"}),
        tool("order", ["size"], size={"enum": ["S", "M"]}, tags={"type": "array", "items": {"type": "string"}}),
        tool("move", ["to"], to={"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}),
    ]
)
TRICKY = 'a = {"b": [1, "}"]}\n\tprint(\'ü 😀 \\\\ \\n\') </ <b> # ; )]'
CALLS = [
    Written("get_weather", {"city": "Oslo", "days": 3, "wet": True}),
    Written("get_time", {}),
    Written("write_file", {"path": "a/b.py", "text": TRICKY}),
    Written("order", {"size": "M", "tags": ["x, y", "]"]}),
    Written("move", {"to": {"x": 1.5}}),
    Written("write_file", {"path": "", "text": "\n true \n"}),
]


def vocabulary(form: ToolFormat, *, controls: bool) -> Vocabulary:
    """The toy vocabulary, with the format's markers as control tokens if they should be."""
    names = dict.fromkeys(
        (
            *(each.text for each in form.openings if each.enforced and not each.at_start),
            *(text for text in form.marks.closes if len(text) > 1),
            *form.within,
        )
    )
    special = {len(TOKENS) + index: name for index, name in enumerate(names)} if controls else {}
    return Vocabulary([*TOKENS, *[b""] * len(special)], special=TV.special | special, eos=TV.eos)


def chat(form: ToolFormat, *, controls: bool = False) -> tuple[Chat, Vocabulary]:
    tokens = vocabulary(form, controls=controls)
    return Chat(ByteTokenizer(), tokens, tool_format=form.name), tokens


def parse(
    form: ToolFormat,
    parts: Iterable[str],
    tools: tuple[Tool, ...] = TOOLS,
    *,
    opened: bool = False,
    cut: bool = False,
) -> Message:
    number = itertools.count()
    parser, builder = (
        AnswerParser(form, tools, reasoning=form.reasoning, opened=opened, new_id=lambda: f"call_{next(number)}"),
        MessageBuilder(),
    )
    for part in parts:
        builder.add(parser.feed(part))
    builder.add(parser.finish(cut=cut))
    return builder.message()


def cuts(text: str, *, random_ones: int = 60) -> Iterator[list[str]]:
    """The text in pieces: every two-part cut, one character each, and random cuts."""
    yield list(text)
    yield from ([text[:place], text[place:]] for place in range(len(text) + 1))
    dice = random.Random(text)
    for _ in range(random_ones if len(text) > 12 else 0):
        places = sorted(dice.sample(range(len(text)), dice.randint(1, 12)))
        yield [text[start:end] for start, end in itertools.pairwise([0, *places, len(text)])]


def spelled(tokens: Vocabulary, output: Iterable[int]) -> str:
    """The text of tokens, control tokens by their names."""
    return b"".join(
        b"" if token in tokens.eos else tokens.tokens[token] or tokens.special[token].encode() for token in output
    ).decode(errors="replace")


def scribble(guide: Guide, tokens: Vocabulary, form: ToolFormat, seed: int, most: int = 900) -> str | None:
    """A random text that the guide allows, whole; None if none came to an end."""
    dice, output, cursor = random.Random(seed), list[int](), guide.start()
    ends = [
        '"',
        "\n</parameter>\n",
        "}",
        "]",
        "'",
        ")",
        "1",
        *form.marks.closes,
        form.reasoning and form.reasoning.close,
    ]
    while len(output) < most:
        legal = ids(cursor.mask(), len(tokens) + 31) if cursor.mask() is not None else list(range(32, 127))
        if cursor.accepting and (dice.random() < 0.5 or set(legal) <= tokens.eos):
            return spelled(tokens, output)
        legal = [token for token in legal if token not in tokens.eos]
        run = [dice.choice(legal)]
        for text in dice.sample([each for each in ends if each], 3) if dice.random() < 0.6 else []:
            after, place = cursor, list(text.encode())
            for token in place:
                after = after.advance(token) if after is not None else None  # type: ignore[assignment]
            run = place if after is not None else run
        for token in run:
            output.append(token)
            cursor = cursor.advance(token)  # type: ignore[assignment]
    return None
