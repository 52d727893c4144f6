"""Makes conversations of single calls, by what their requests begin with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentspec.replay.conversations import Call, Conversation, Message, Said, Transcript


class Grouper:
    """Groups calls: one whose request begins with all of another's, its answer included, is of the same conversation.

    In which order they come does not matter, as long as the conversation has not been taken as ended. A conversation
    whose tools or schema change goes on in a second one of the same name, which holds the messages from the start and
    has only its own turns as targets. The same request with another answer begins a conversation of its own.

    The clients of APIs write a message again in other white space, and leave thoughts out: such messages count as the
    same, and the conversation has the one that the model wrote.

    Args:
        most_chars: Of all conversations that may still go on: beyond it the one that did so longest ago is taken as
            ended.
    """

    def __init__(self, most_chars: int) -> None:
        self._most_chars = most_chars
        self._chars = 0
        self._open: dict[_Open, None] = {}  # the one that went on last is last
        self._ends: dict[bytes, dict[_Open, None]] = {}  # by the digest of all of it
        self._parts: dict[bytes, dict[_Open, None]] = {}  # by the digest up to each of a model's messages

    def add(self, call: Call) -> Iterator[Conversation]:
        """Take a call; conversations that are taken as ended come out."""
        chain, chars = _chain([*call.messages, call.answer.message])
        related = self._related(chain)
        for found in related:
            if found.accepts(call):
                self._remove(found)
                found.take(call, chain, chars)
                break
        else:
            found = _Open(call, chain, chars, trace_id=related[0].trace_id if related else call.trace_id)
        self._insert(found)
        while self._chars > self._most_chars and len(self._open) > 1:
            yield self._pop()

    def finish(self) -> Iterator[Conversation]:
        """All that are left, in the order in which they last went on."""
        while self._open:
            yield self._pop()

    def _related(self, chain: Sequence[bytes]) -> list[_Open]:
        """The conversations that the call goes on from, longest first, and those that hold all of it."""
        goes_on = [found for digest in reversed(chain) for found in reversed(self._ends.get(digest, {}))]
        return list(dict.fromkeys([*goes_on, *reversed(self._parts.get(chain[-1], {}))]))

    def _insert(self, found: _Open) -> None:
        self._open[found] = None
        self._chars += found.chars
        for index, digest in self._places(found):
            index.setdefault(digest, {})[found] = None

    def _remove(self, found: _Open) -> None:
        del self._open[found]
        self._chars -= found.chars
        for index, digest in self._places(found):
            del index[digest][found]
            if not index[digest]:
                del index[digest]

    def _places(self, found: _Open) -> Iterator[tuple[dict[bytes, dict[_Open, None]], bytes]]:
        yield self._ends, found.chain[-1]
        yield from ((self._parts, digest) for digest in found.parts())

    def _pop(self) -> Conversation:
        found = next(iter(self._open))
        self._remove(found)
        return found.conversation()


class _Open:
    """A conversation that may go on."""

    def __init__(self, call: Call, chain: list[bytes], chars: int, *, trace_id: str) -> None:
        self.trace_id = trace_id
        self.chars = chars
        self.chain = chain
        self._first = call
        self._messages: list[Message] = [*call.messages, call.answer.message]
        self._written: dict[int, Said] = {len(call.messages): call.answer}

    def accepts(self, call: Call) -> bool:
        """Whether a related call is a turn that this conversation does not have yet, in the same setting."""
        one, other = self._first.setting, call.setting
        return len(call.messages) not in self._written and one.tools == other.tools and one.schema == other.schema

    def take(self, call: Call, chain: list[bytes], chars: int) -> None:
        """Add a call that is accepted."""
        place, length = len(call.messages), len(self._messages)
        if place >= length:
            self._messages += [*call.messages[length:], call.answer.message]
            self.chain, self.chars = chain, chars
        self._messages[place] = call.answer.message
        self._written[place] = call.answer

    def parts(self) -> set[bytes]:
        """Digests up to each of a model's messages."""
        return {self.chain[i] for i, message in enumerate(self._messages) if message.get("role") == "assistant"}

    def conversation(self) -> Conversation:
        """As far as it went."""
        transcript = Transcript()
        for index, message in enumerate(self._messages):
            transcript.add(self._written.get(index, Said(message)), target=index in self._written)
        first = self._first
        (found,) = transcript.conversation(first.file, first.line, self.trace_id, setting=first.setting)
        assert isinstance(found, Conversation)
        return found


def _chain(messages: list[Message]) -> tuple[list[bytes], int]:
    """A digest of each beginning of the messages, and how many characters they are."""
    found, chars, digest = [], 0, b""
    for message in messages:
        text = _key(message)
        chars += len(text)
        digest = hashlib.blake2b(digest + text.encode(), digest_size=16).digest()
        found.append(digest)
    return found, chars


def _key(message: Message) -> str:
    """What makes two messages the same."""
    content = message.get("content")
    if isinstance(content, list):
        texts = [str(part.get("text")) for part in content if isinstance(part, dict) and part.get("type") == "text"]
        content = "".join(texts) if len(texts) == len(content) else content
    role = message.get("role")
    calls = [_call_key(call) for call in message.get("tool_calls") or [] if isinstance(call, dict)]
    text = content.strip() if isinstance(content, str) else content or ""
    return json.dumps(["system" if role == "developer" else role, text, calls], sort_keys=True)


def _call_key(call: Mapping[str, Any]) -> list[Any]:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments")
    try:
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        pass
    return [function.get("name"), arguments]
