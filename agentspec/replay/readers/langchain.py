"""LangChain's messages, as its own functions write them.

Source: langchain-core's `messages_to_dict` (`{"type", "data"}`), `dumpd` (`{"lc", "type": "constructor", "id",
"kwargs"}`) and a message's `model_dump` (`{"type", "content", ...}`). `tool_calls` holds arguments as objects; where
the provider's own message is kept in `additional_kwargs`, as for OpenAI's models, it has them as the model wrote them.
A list is one conversation, and so is the `messages` of a graph's state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Said, Transcript
from agentspec.replay.readers.base import Format, Item, Record, name_at, nothing, object_at, objects, text_at
from agentspec.replay.readers.messages import assistant, call, content_of, openai_said, tool_result

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "developer": "system",
}
_BLOCKS_OF_CALLS = frozenset(
    {"tool_use", "tool_call", "function_call", "input_json_delta"}
)  # `tool_calls` has them too
_THOUGHTS = {"thinking": "thinking", "reasoning": "reasoning"}


def read_message(dump: Mapping[str, Any]) -> Said:
    """A dumped message.

    Raises:
        TraceError: It can't be used.
    """
    found = _fields(dump)
    if found is None:
        raise TraceError("not a message of LangChain's")
    kind, fields = found
    role = text_at(fields, "role") if kind == "chat" else _ROLES[kind]
    if role == "assistant":
        return _assistant(fields)
    if role == "tool":
        return Said(tool_result(text_at(fields, "tool_call_id"), fields.get("content"), name_at(fields, "name")))
    return Said({"role": role, "content": content_of(fields.get("content"))})


def is_message(value: object) -> bool:
    """Whether a value is a dumped message."""
    return isinstance(value, dict) and _fields(value) is not None


class Reader:
    """Collects the messages of one list, or reads the lists in rows."""

    def __init__(self) -> None:
        self._transcript = Transcript()
        self._first: Record | None = None

    def feed(self, record: Record) -> Iterable[Item]:
        """Take a message, or a row of them."""
        if is_message(record.value):
            self._transcript.add(read_message(record.value))
            self._first = self._first or record
            return nothing()
        transcript = Transcript()
        transcript.extend([read_message(message) for message in objects(record.value, "messages")])
        trace_id = name_at(record.value, "trace_id", "thread_id", "id") or f"line {record.line}"
        return transcript.conversation(record.file, record.line, trace_id)

    def finish(self) -> Iterable[Item]:
        """The conversation."""
        if self._first is None:
            return nothing()
        return self._transcript.conversation(self._first.file, self._first.line, f"line {self._first.line}")


def _fields(dump: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The kind of a message and what it holds; None: it is none."""
    kind, fields = dump.get("type"), dump
    if dump.get("lc") == 1:
        path, fields = dump.get("id"), dump.get("kwargs", {})
        kind = path[-1] if isinstance(path, list) and path else None
    elif isinstance(dump.get("data"), dict):
        fields = dump["data"]
    elif "content" not in dump or ("role" in dump and kind != "chat"):
        return None
    if not isinstance(kind, str) or not isinstance(fields, dict):
        return None
    kind = kind.removesuffix("Chunk").removesuffix("Message").lower()
    return (kind, dict(fields)) if kind in _ROLES or kind == "chat" else None


def _assistant(fields: Mapping[str, Any]) -> Said:
    texts, thoughts, unknown = _content(fields.get("content"))
    thoughts = thoughts or text_at(object_at(fields, "additional_kwargs"), "reasoning_content")
    raw = objects(object_at(fields, "additional_kwargs"), "tool_calls")
    if raw:
        said = openai_said({"role": "assistant", "tool_calls": raw})
        return Said(
            assistant(texts, objects(said.message, "tool_calls"), reasoning=thoughts), said.approximate or unknown
        )
    calls = [_call(made) for made in [*objects(fields, "tool_calls"), *objects(fields, "invalid_tool_calls")]]
    inexact = any(not isinstance(made.get("args"), str) for made in objects(fields, "tool_calls"))
    return Said(assistant(texts, calls, reasoning=thoughts), inexact or unknown)


def _call(made: Mapping[str, Any]) -> dict[str, Any]:
    return call(text_at(made, "name"), made.get("args"), text_at(made, "id"))


def _content(content: object) -> tuple[str, str, bool]:
    """The text and the thoughts of a model's content, and whether there is something else in it."""
    blocks: Sequence[object] = content if isinstance(content, list) else [content or ""]
    texts, thoughts, unknown = [], [], False
    for block in blocks:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict) and block.get("type") in ("text", "output_text"):
            texts.append(text_at(block, "text"))
        elif isinstance(block, dict) and isinstance(block.get("type"), str) and block["type"] in _THOUGHTS:
            thoughts.append(text_at(block, _THOUGHTS[block["type"]]))
        else:
            kind = block.get("type") if isinstance(block, dict) else None
            unknown |= not (isinstance(kind, str) and kind in _BLOCKS_OF_CALLS)
    return "".join(texts), "".join(thoughts), unknown


def _recognises(value: object) -> bool:
    if is_message(value):
        return True
    messages = value.get("messages") if isinstance(value, dict) else None
    return isinstance(messages, list) and any(map(is_message, messages))


FORMAT = Format(
    "LangChain messages",
    "what messages_to_dict, dumpd and model_dump make of messages, and states of graphs",
    "type human, ai, system or tool with data or content; or lc with a message's class; or messages of these",
    _recognises,
    Reader,
)
