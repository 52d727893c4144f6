"""Recorded conversations and single calls: what readers make of a format, before turns are cut out of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentspec.replay.categories import of_message
from agentspec.replay.turns import Skipped, Turn

Message = Mapping[str, Any]
"""In OpenAI's form."""

Tool = Mapping[str, Any]
"""In OpenAI's form."""

ASKED = ("options", "params")
"""Of a setting, what conversations have under `asked`."""


@dataclass(frozen=True, slots=True)
class Ids:
    """Token ids of a recorded answer.

    Attributes:
        answer: What the model wrote.
        prompt: What it read; empty: not recorded.
        text: Of the answer, in the model's own markup; None: not recorded.
    """

    answer: tuple[int, ...]
    prompt: tuple[int, ...] = ()
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a record.

    Attributes:
        message: In OpenAI's form.
        approximate: Whether it is not to the character what its writer wrote.
        ids: Of a model's message, where they were recorded.
    """

    message: Message
    approximate: bool = False
    ids: Ids | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What holds for every turn of a conversation.

    Attributes:
        tools: What the model could call.
        schema: JSON Schema that its answers without calls were held to, if they were.
        model: Its name as recorded; "": unknown.
        options: What else was asked, as far as the record tells; see `Turn`.
        params: How it was sampled, likewise.
    """

    tools: tuple[Tool, ...] = ()
    schema: Mapping[str, Any] | None = None
    model: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Messages, and which of them a model wrote.

    Attributes:
        file: Where it was read from.
        line: Of its first record there; see `Turn`.
        trace_id: Its name.
        messages: At least one.
        targets: Indexes of the messages to replay, each an assistant's.
        approximate: Those of them that are not to the character what the model wrote.
        ids: Token ids by target, where they were recorded.
    """

    file: str
    line: int
    trace_id: str
    messages: tuple[Message, ...]
    targets: tuple[int, ...]
    setting: Setting = Setting()
    approximate: frozenset[int] = frozenset()
    ids: Mapping[int, Ids] = field(default_factory=dict)

    def turns(self) -> Iterator[Turn | Skipped]:
        """A turn for each target; one with nothing before it is skipped."""
        for index in self.targets:
            if index:
                yield self._turn(index)
            else:
                yield Skipped(self.file, self.line, "there is no message before it", index)

    def _turn(self, index: int) -> Turn:
        answer, schema = self.messages[index], self.setting.schema
        ids = self.ids.get(index, Ids(()))
        return Turn(
            self.trace_id,
            index,
            self.messages[:index],
            self.setting.tools,
            self.file,
            self.line,
            called=bool(answer.get("tool_calls")),
            category=of_message(answer, held=schema is not None),
            schema=schema,
            answer=answer,
            approximate=index in self.approximate,
            tokens=ids.answer,
            prompt=ids.prompt,
            written=ids.text,
            model=self.setting.model,
            options=self.setting.options,
            params=self.setting.params,
        )

    @property
    def row(self) -> dict[str, Any]:
        """As `agentspec convert` writes it and the reader of conversations reads it."""
        row: dict[str, Any] = {"trace_id": self.trace_id, "model": self.setting.model}
        row |= {"tools": list(self.setting.tools), "messages": list(self.messages), "targets": list(self.targets)}
        if self.setting.schema is not None:
            wrapped = {"name": "answer", "schema": self.setting.schema}
            row["response_format"] = {"type": "json_schema", "json_schema": wrapped}
        if asked := {name: dict(each) for name in ASKED if (each := getattr(self.setting, name))}:
            row["asked"] = asked
        if self.approximate:
            row["approximate"] = sorted(self.approximate)
        if self.ids:
            row["tokens"] = [_ids_row(index, ids) for index, ids in sorted(self.ids.items())]
        return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to a model and its answer, of a log that repeats the conversation with each of them.

    Attributes:
        file: Where it was read from.
        line: Of its record there; see `Turn`.
        trace_id: Of the conversation that it begins, unless it goes on from an earlier one.
        messages: Of the request, at least one.
        answer: A model's.
    """

    file: str
    line: int
    trace_id: str
    messages: tuple[Message, ...]
    answer: Said
    setting: Setting = Setting()


class Transcript:
    """Collects a conversation message by message, where a record is not a whole one."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._targets: list[int] = []
        self._approximate: set[int] = set()
        self._ids: dict[int, Ids] = {}

    def add(self, said: Said, *, target: bool = True) -> None:
        """The next message; an assistant's is a target unless it is only part of the prompt."""
        if target and said.message.get("role") == "assistant":
            index = len(self.messages)
            self._targets.append(index)
            if said.approximate:
                self._approximate.add(index)
            if said.ids:
                self._ids[index] = said.ids
        self.messages.append(said.message)

    def extend(self, said: Sequence[Said], *, target: bool = True) -> None:
        """The next messages, in order."""
        for each in said:
            self.add(each, target=target)

    def conversation(
        self, file: str, line: int, trace_id: str, *, setting: Setting = Setting()
    ) -> Iterator[Conversation | Skipped]:
        """What was collected so far: nothing where there is nothing, and skipped where no message is a model's."""
        if self._targets:
            yield Conversation(
                file=file,
                line=line,
                trace_id=trace_id,
                messages=tuple(self.messages),
                targets=tuple(self._targets),
                setting=setting,
                approximate=frozenset(self._approximate),
                ids=dict(self._ids),
            )
        elif self.messages:
            yield Skipped(file, line, "no message is a model's")

    def branch(self, length: int) -> Transcript:
        """Another one that begins with the first messages of this one, none of them a target."""
        found = Transcript()
        found.messages = self.messages[:length]
        return found


def _ids_row(index: int, ids: Ids) -> dict[str, Any]:
    row: dict[str, Any] = {"index": index, "answer": list(ids.answer)}
    row |= {"prompt": list(ids.prompt)} if ids.prompt else {}
    return row | ({} if ids.text is None else {"text": ids.text})
