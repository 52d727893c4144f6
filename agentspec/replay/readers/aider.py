"""Chat histories of Aider (`.aider.chat.history.md`).

Source: Aider-AI/aider, `aider/io.py`. Markdown: `# aider chat started at ...` opens a session; a line `#### ...` is the
user's, a line `> ...` the program's own, both with two spaces at their end; all else is the model's. What the program
said stands in the prompt as a user's message, since the model is answered with some of it (lint errors, edits that
failed); the files, the map of the repository and the system prompt are not recorded, so a replay reads less than the
model did. `/clear` and `/reset` begin a new conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from agentspec.replay.conversations import Said, Setting, Transcript
from agentspec.replay.readers.base import Format, Item, Record, rows
from agentspec.replay.readers.messages import assistant

_START = "# aider chat started at "
_MODEL = re.compile(r"^> (?:Main model|Models?): (\S+)", re.MULTILINE)
_FORGET = frozenset({"/clear", "/reset"})


def read(record: Record) -> Iterator[Item]:
    """The conversations of one file."""
    lines = record.value.replace("\r\n", "\n").split("\n")
    end = "  " if any(line.startswith("> ") and line.endswith("  ") for line in lines) else ""  # or an editor cut them
    transcript, first, found = Transcript(), 1, 0
    model = _MODEL.search(record.value)
    setting = Setting(model=model.group(1) if model else "")
    for number, kind, text in _blocks(lines, end):
        forgets = kind == "user" and text.split(maxsplit=1)[:1] and text.split(maxsplit=1)[0] in _FORGET
        if kind == "start" or forgets:
            yield from _conversation(transcript, Record(setting, record.file, first), found)
            found += bool(transcript.messages)
            transcript, first = Transcript(), number
        if kind == "model":
            transcript.add(Said(assistant(text)))
        elif kind in ("user", "program"):
            transcript.add(Said({"role": "user", "content": text}))
    yield from _conversation(transcript, Record(setting, record.file, first), found)


def _conversation(transcript: Transcript, record: Record, number: int) -> Iterable[Item]:
    if all(message["role"] == "user" for message in transcript.messages):
        return ()  # a session in which nothing was asked
    name = f"{PurePath(record.file).stem} {number + 1}"
    return transcript.conversation(record.file, record.line, name, setting=record.value)


def _blocks(lines: list[str], end: str) -> Iterator[tuple[int, str, str]]:
    """Each run of lines of one kind, with the number of its first: start, user, program or model."""
    kind, first, block = "", 1, list[str]()
    for number, line in enumerate(lines, 1):
        here, text = _kind(line, end)
        if here == "model" and not text.strip() and kind != "model":
            continue  # blank lines between the others
        if here != kind or here == "start":
            if joined := "\n".join(block).strip("\n"):
                yield first, kind, joined
            kind, first, block = here, number, []
        block.append(text)
    if joined := "\n".join(block).strip("\n"):
        yield first, kind, joined


def _kind(line: str, end: str) -> tuple[str, str]:
    if line.startswith(_START):
        return "start", line
    if line.startswith("#### ") and line.endswith(end):
        return "user", line[5:].rstrip()
    if line.startswith(">") and line[1:2] in ("", " ") and (line.endswith(end) or line.strip() == ">"):
        return "program", line[2:].rstrip()
    return "model", line


FORMAT = Format(
    "Aider",
    "chat histories of Aider, in Markdown",
    f"a text that begins with {_START.strip()!r}",
    lambda value: isinstance(value, str) and value.lstrip().startswith(_START),
    rows(read),
)
