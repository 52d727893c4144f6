"""Finished answers on disk, so that the second store outlives the process."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from filelock import FileLock

from agentspec.errors import ConfigError
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.own_file import open_own

_LOG = logging.getLogger(__name__)

_KIND = "agentspec answers"
_VERSION = 1

Kept = tuple[str, list[int]]
"""A caller, and the tokens of what it was answered."""


class AnswerFile:
    """A file of JSON lines: a head that names format and tokenizer, then one answer a line, the oldest first.

    Answers are appended by a thread of its own, which finishes its work before the process ends; a write that fails is
    warned about, and nothing more is written. The file can be shared by several processes. Only its owner may read it:
    it holds what models wrote.

    Args:
        path: Made when the first answer is kept.
        vocabulary: The answers' tokens are its ids.
        capacity: The most tokens in the file, give or take as many again.
    """

    def __init__(self, path: Path, vocabulary: Vocabulary, *, capacity: int = 262_144) -> None:
        self.path = path
        self._head = json.dumps({"kind": _KIND, "version": _VERSION, "vocabulary": _fingerprint(vocabulary)})
        self._size = len(vocabulary)
        self._capacity = capacity
        self._held = 0
        self._failed = False
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="agentspec-answers")

    def read(self) -> list[Kept]:
        """The latest answers in the file, the oldest first. Lines that can't be read are left out with a warning.

        Raises:
            ConfigError: The file can't be read, is no such file, or is another tokenizer's.
        """
        try:
            with self.path.open(encoding="utf-8", errors="replace") as file:
                head = file.readline()
                if not head:  # made, but not yet written, or emptied: as good as new
                    return []
                self._check(head)
                lines = list(file)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigError(f"history {self.path} can't be read ({error.strerror}): name another file") from error
        answers = [answer for line in lines if (answer := self._answer(line)) is not None]
        if len(answers) < len(lines):
            _LOG.warning("history %s: %d of %d lines left out", self.path, len(lines) - len(answers), len(lines))
        kept = list(_latest(answers, self._capacity))
        self._held = sum(len(tokens) for _, tokens in answers)
        return kept

    def append(self, caller: str, answer: Sequence[int]) -> None:
        """Keep an answer; returns at once."""
        self._writer.submit(self._append, caller, list(answer))

    def close(self) -> None:
        """Wait until everything is written."""
        self._writer.shutdown()

    def _append(self, caller: str, answer: list[int]) -> None:
        if self._failed:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self.path}.lock"):
                self._write(_line(caller, answer))
                self._held += len(answer)
                if self._held > 2 * self._capacity:
                    self._shorten()
        except (OSError, ConfigError) as error:
            self._failed = True
            _LOG.warning("history %s can't be written, answers are not kept: %s", self.path, error)

    def _write(self, line: str) -> None:
        """Append a line of its own to a file that is this tokenizer's: another process may have made it meanwhile."""
        with open_own(self.path) as file:
            file.seek(0)
            head = file.readline().decode(errors="replace")
            before = "" if head else self._head + "\n"
            if head:
                self._check(head)
                file.seek(-1, os.SEEK_END)
                before = "" if file.read() == b"\n" else "\n"
            file.write((before + line).encode())

    def _shorten(self) -> None:
        """Replace the file by one with the latest answers only."""
        kept = self.read()
        shorter = self.path.with_name(self.path.name + ".partial")
        with open(os.open(shorter, os.O_WRONLY | os.O_TRUNC | os.O_CREAT, 0o600), "w") as file:
            file.write(self._head + "\n")
            file.writelines(_line(caller, answer) for caller, answer in kept)
        shorter.replace(self.path)
        self._held = sum(len(answer) for _, answer in kept)

    def _check(self, head: str) -> None:
        if head.rstrip("\r\n") == self._head:
            return
        try:
            found = json.loads(head)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or found.get("kind") != _KIND:
            raise ConfigError(f"history {self.path} is not a file of earlier answers: name another file")
        if found.get("version") != _VERSION:
            raise ConfigError(
                f"history {self.path} has format {found.get('version')!r}, this version writes {_VERSION}: "
                "name another file"
            )
        raise ConfigError(f"history {self.path} was written with another tokenizer: name a file for each model")

    def _answer(self, line: str) -> Kept | None:
        try:
            found = json.loads(line)
            caller, tokens = found["caller"], found["tokens"]
        except (ValueError, LookupError, TypeError, RecursionError):
            return None
        fits = isinstance(tokens, list) and all(type(token) is int and 0 <= token < self._size for token in tokens)
        return (caller, tokens) if fits and isinstance(caller, str) else None


def _latest(answers: Sequence[Kept], capacity: int) -> Iterator[Kept]:
    first, held = len(answers), 0
    while first and held + len(answers[first - 1][1]) <= capacity:
        first -= 1
        held += len(answers[first][1])
    yield from answers[first:]


def _line(caller: str, answer: Iterable[int]) -> str:
    return json.dumps({"caller": caller, "tokens": list(answer)}, separators=(",", ":")) + "\n"


def _fingerprint(vocabulary: Vocabulary) -> str:
    """Tells tokenizers apart whose ids mean different text."""
    digest = hashlib.sha256()
    for token, text in enumerate(vocabulary.tokens):
        name = vocabulary.special.get(token)
        digest.update(b"%d " % len(text) + text if name is None else b"control " + name.encode())
    return digest.hexdigest()
