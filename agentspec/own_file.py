"""Files of what people and models wrote: lines are appended, and only their owner can read them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


def open_own(path: Path) -> BinaryIO:
    """A file to read and to append to, made if it is not there.

    Raises:
        OSError: It can't be opened.
    """
    return open(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "a+b")


def first_line(path: Path) -> bytes | None:
    """The first line of a file that lines can be appended to; it is made if it is not there. None: it is no file.

    Raises:
        OSError: It can't be opened.
    """
    if path.exists() and not path.is_file():  # to open a pipe would wait for who reads it
        return None
    with open_own(path) as file:
        file.seek(0)
        return file.readline()


def append_line(path: Path, line: bytes) -> None:
    """Append a line of its own, even behind one that was torn.

    Raises:
        OSError: It can't be written.
    """
    with open_own(path) as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            line = line if file.read() == b"\n" else b"\n" + line
        file.write(line + b"\n")
