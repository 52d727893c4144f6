"""Session files of Claude Code (`~/.claude/projects/<project>/<session>.jsonl`), and its `stream-json` output.

Source: files that it writes (versions 1.0 to 2.1), and the documentation of its hooks and SDK. Each line has a `type`;
`user` and `assistant` lines hold a `message` of Anthropic's Messages API, one content block a line: lines of one
`message.id` are one answer. `uuid` and `parentUuid` make a tree: a prompt whose parent is an earlier line begins again
from there, and one without a parent, as after a compaction, from nothing. Lines with `isSidechain` are a subagent's: a
conversation of its own, by `agentId` where it is there. Inputs of tools are objects: the model's white space is lost.
The system prompt and the tools are not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Setting, Transcript
from agentspec.replay.readers.anthropic_api import read_message
from agentspec.replay.readers.base import Format, Item, Record, name_at, object_at, objects, text_at

_MARKS = ("sessionId", "session_id", "uuid", "leafUuid", "messageId")


class Reader:
    """Collects the conversations of one session file."""

    def __init__(self) -> None:
        self._chains: dict[str, _Chain] = {}
        self._owners: dict[str, str] = {}  # whose a line of a sidechain is

    def feed(self, record: Record) -> Iterator[Item]:
        """Take a line; a conversation comes out where another one begins."""
        row = record.value
        name = self._chain_of(row)
        if row["type"] not in ("user", "assistant"):
            if name in self._chains:
                self._chains[name].pass_by(row)
            return
        message = object_at(row, "message")
        if row.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
            return  # the program's own words
        if name not in self._chains:
            self._chains[name] = _Chain(record, name)
        yield from self._chains[name].take(record, row["type"], message)

    def finish(self) -> Iterator[Item]:
        """The conversations that are left."""
        for chain in self._chains.values():
            yield from chain.finish()

    def _chain_of(self, row: Mapping[str, Any]) -> str:
        """The name of the conversation that a line belongs to; "": the session itself."""
        if row.get("isSidechain") is not True and not row.get("parent_tool_use_id"):
            return ""
        own = name_at(row, "agentId", "parent_tool_use_id")
        name = own or self._owners.get(text_at(row, "parentUuid")) or text_at(row, "uuid")
        self._owners[text_at(row, "uuid")] = name
        return name


class _Chain:
    """One conversation, as far as it was read."""

    def __init__(self, record: Record, name: str) -> None:
        session = name_at(record.value, "sessionId", "session_id") or PurePath(record.file).stem
        self._name = f"{session} {name}" if name else session
        self._transcript = Transcript()
        self._first = record
        self._model = ""
        self._places: dict[str, int] = {}  # how many messages there are up to a line
        self._linked = False  # whether lines name those that they follow
        self._answer: list[Mapping[str, Any]] = []  # blocks of the answer that is being read
        self._answer_id = ""

    def take(self, record: Record, kind: str, message: Mapping[str, Any]) -> Iterator[Item]:
        """Take a line with a message."""
        if kind == "assistant":
            self._write(message)
        else:
            said = read_message({**message, "role": "user"})
            self._end_answer()
            if said[0].message["role"] == "user":
                yield from self._begin_again(record)
            self._transcript.extend(said)
        self.pass_by(record.value)

    def pass_by(self, row: Mapping[str, Any]) -> None:
        """Remember where a line stands: what follows a compaction stands at the start."""
        self._linked |= text_at(row, "parentUuid") in self._places
        if uuid := text_at(row, "uuid"):
            forgets = row.get("subtype") == "compact_boundary"
            self._places[uuid] = 0 if forgets else len(self._transcript.messages) + bool(self._answer)

    def finish(self) -> Iterator[Item]:
        """The conversation."""
        self._end_answer()
        yield from self._conversation()

    def _conversation(self) -> Iterable[Item]:
        if not any(message["role"] == "assistant" for message in self._transcript.messages):
            return ()  # a prompt that was taken back, or never answered
        setting = Setting(model=self._model)
        return self._transcript.conversation(self._first.file, self._first.line, self._name, setting=setting)

    def _begin_again(self, record: Record) -> Iterator[Item]:
        """Where a prompt follows an earlier line than the last one: what came after that line ends here."""
        if not self._linked:
            return
        parent = text_at(record.value, "parentUuid")
        length = self._places.get(parent, len(self._transcript.messages) if parent else 0)
        if length == len(self._transcript.messages):
            return
        yield from self._conversation()
        self._transcript = self._transcript.branch(length)
        self._places = {uuid: place for uuid, place in self._places.items() if place <= length}
        self._first = record

    def _write(self, message: Mapping[str, Any]) -> None:
        """Take blocks of an answer."""
        name = name_at(message, "id")
        if self._answer and (not name or name != self._answer_id):
            self._end_answer()
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else objects(message, "content")
        read_message({"role": "assistant", "content": blocks})  # that they can be used
        if not blocks:
            raise TraceError("the message is empty")
        self._answer_id = name
        self._answer += blocks
        self._model = self._model or name_at(message, "model")

    def _end_answer(self) -> None:
        if self._answer:
            self._transcript.extend(read_message({"role": "assistant", "content": self._answer}))
            self._answer = []


def _recognises(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    return any(isinstance(value.get(mark), str) for mark in _MARKS) and (
        value["type"] not in ("user", "assistant") or isinstance(value.get("message"), dict)
    )


FORMAT = Format(
    "Claude Code",
    "session files of Claude Code, and its stream-json output",
    "type with sessionId, uuid or leafUuid; user and assistant with message",
    _recognises,
    Reader,
)
