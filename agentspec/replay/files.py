"""The records of a trace file: line by line where it is JSON Lines, whole where it is one document.

Which of the two shows in the text, not in the name of the file: it is JSON Lines where its first line is a JSON value
by itself. A JSON list is its items. Any other text is one record, if a format knows it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from agentspec.errors import TraceError
from agentspec.replay.readers.base import Record
from agentspec.replay.turns import Skipped

LARGEST_DOCUMENT_BYTES = 256 * 2**20
"""Of a file that is one JSON document; JSON Lines may be of any size."""

LARGEST_TEXT_BYTES = 32 * 2**20
"""Of a file in YAML or Markdown."""

LARGEST_LINE_BYTES = 64 * 2**20
"""Of JSON Lines."""

_HEAD_BYTES = 65536


def read_records(name: str, *, is_text: Callable[[object], bool]) -> Iterator[Record | Skipped]:
    """The records of a file, and what of it is none.

    Args:
        name: Of the file, in UTF-8.
        is_text: Whether a format knows a text that begins like this.

    Raises:
        TraceError: The file can't be read, or is one document and too large.
    """
    try:
        with Path(name).open("rb") as file:
            yield from _records(name, file, is_text)
    except OSError as error:
        raise TraceError(f"trace file {name} can't be read: {error.strerror}") from error


def parse(text: bytes) -> Any:  # noqa: ANN401
    """The JSON value of a line.

    Raises:
        TraceError: It is none.
    """
    try:
        return json.loads(text.decode())
    except UnicodeDecodeError:
        raise TraceError("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise TraceError(f"not JSON: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, or a thousand brackets
        raise TraceError("not JSON that can be read") from None


def _records(name: str, file: BinaryIO, is_text: Callable[[object], bool]) -> Iterator[Record | Skipped]:
    head = file.read(_HEAD_BYTES).removeprefix(b"\xef\xbb\xbf")
    if not head.strip():
        yield Skipped(name, 0, "the file is empty")
        return
    if is_text(head.decode(errors="replace")):
        text = _whole(name, LARGEST_TEXT_BYTES)
        try:
            yield Record(text.decode(), name, 1)
        except UnicodeDecodeError:
            yield Skipped(name, 0, "not UTF-8")
        return
    file.seek(0)
    first, second = _first_lines(file)
    if (_is_value(first) and not (first.lstrip().startswith(b"[") and not second)) or _is_object(second):
        file.seek(0)
        yield from _lines(name, file)
    else:
        yield from _document(name, first)


def _document(name: str, first: bytes) -> Iterator[Record | Skipped]:
    if not first.startswith((b"{", b"[")):
        yield Skipped(name, 1, "no format that is known: see `agentspec replay --list-formats`")
        return
    text = _whole(name, LARGEST_DOCUMENT_BYTES)
    try:
        value = json.loads(text.decode("utf-8-sig"))
    except UnicodeDecodeError:
        yield Skipped(name, 0, "not UTF-8")
    except json.JSONDecodeError as error:
        yield Skipped(name, error.lineno, f"not JSON: {error.msg} at column {error.colno}")
    except (ValueError, RecursionError):
        yield Skipped(name, 0, "not JSON that can be read")
    else:
        items = value if isinstance(value, list) else [value]
        yield from (Record(item, name, place) for place, item in enumerate(items, 1))


def _whole(name: str, largest: int) -> bytes:
    """All of a file that is one document.

    Raises:
        TraceError: It is too large.
    """
    size = Path(name).stat().st_size
    if size > largest:
        raise TraceError(
            f"trace file {name} is one document of {size / 2**20:,.0f} MiB, and such a file is read whole, up to "
            f"{largest / 2**20:,.0f} MiB: split it, or write it as JSON Lines, one record a line"
        )
    return Path(name).read_bytes()


def _lines(name: str, file: BinaryIO) -> Iterator[Record | Skipped]:
    number = 0
    while line := file.readline(LARGEST_LINE_BYTES):
        number += 1
        if len(line) == LARGEST_LINE_BYTES and not line.endswith(b"\n"):
            yield Skipped(name, number, f"the line is longer than {LARGEST_LINE_BYTES / 2**20:.0f} MiB")
            while line and not line.endswith(b"\n"):
                line = file.readline(LARGEST_LINE_BYTES)
        elif text := (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).strip():
            try:
                yield Record(parse(text), name, number)
            except TraceError as error:
                yield Skipped(name, number, str(error))


def _first_lines(file: BinaryIO) -> tuple[bytes, bytes]:
    """The first two lines that are not blank, without what is around them."""
    found: list[bytes] = []
    while len(found) < 2 and (line := file.readline(LARGEST_LINE_BYTES)):
        if text := line.removeprefix(b"\xef\xbb\xbf").strip():
            found.append(text)
    return found[0], found[1] if len(found) > 1 else b""


def _is_value(line: bytes) -> bool:
    try:
        parse(line)
    except TraceError:
        return False
    return True


def _is_object(line: bytes) -> bool:
    """Whether a line is an object by itself: then the first one was a broken line of JSON Lines."""
    return line.startswith(b"{") and _is_value(line)
