"""Writes recorded answers in the tokens of one model, as its engine would have had to write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from agentspec.chat.calls import Written
from agentspec.chat.chat import Chat
from agentspec.chat.messages import read_messages
from agentspec.config import SamplingParams
from agentspec.engine.request import Order
from agentspec.errors import TraceError
from agentspec.grammar.base import Cursor, Guide
from agentspec.grammar.spelling import Spelling
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.local.ask import Ask, Asker, Options
from agentspec.replay.asks import asked_of, held_to, params_of
from agentspec.replay.oracle import Recorded
from agentspec.replay.own_ids import own_ids
from agentspec.replay.turns import Turn

_LONGEST_TOKEN = 32  # bytes of a token that is tried in the place of one that may not stand there


@dataclass(frozen=True, slots=True)
class Transcribed:
    """A turn's answer in tokens.

    Attributes:
        recorded: For the oracle.
        held: What the answer is held to; see `wire.Held`.
        loosened: Whether that is nothing, though something was asked: the answer could not have been written so.
            (Calls behind a text, which are no more than "auto" where "required" was asked, are no such case.)
        own_ids: Whether the tokens are the recorded ones.
    """

    recorded: Recorded
    held: str
    loosened: bool
    own_ids: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of an answer's text; `marked`: the markers in it are control tokens, where there are any."""

    text: str
    marked: bool = False


class Scribe:
    """Puts turns into tokens.

    Args:
        tokenizer: With a chat template, or without: then each message is a line.
        vocabulary: Of the same tokenizer.
        tool_format: How calls are written; see `Chat`.
    """

    def __init__(self, tokenizer: Any, vocabulary: Vocabulary, *, tool_format: str | None = None) -> None:  # noqa: ANN401
        self.vocabulary = vocabulary
        self._chat = Chat(tokenizer, vocabulary, tool_format=tool_format)
        self._asker = Asker(tokenizer, vocabulary, self._chat)
        self._spelling = Spelling(vocabulary, self._chat.form.markers)
        self._ids = {name: token for token, name in self._spelling.controls.items()}
        names = sorted(map(re.escape, self._ids), key=len, reverse=True)
        self._markers = re.compile(f"({'|'.join(names)})") if names else None
        own = tokenizer.eos_token_id
        self._ends = sorted(vocabulary.eos, key=lambda token: (token != own, token))

    def transcribe(
        self, turn: Turn, options: Options, *, caller: str = "", max_tokens: int | None = None
    ) -> Transcribed:
        """The answer under the strictest guide that allows it: the one that was asked for, calls as they like, none.

        Args:
            turn: With an answer.
            options: What was asked.
            caller: Whose the request is.
            max_tokens: The most tokens: a longer answer is cut; None: all that was recorded.

        Raises:
            TraceError: No answer was recorded, or it is empty.
            PromptError, GrammarError, ConfigError: The turn can't be asked.
        """
        if turn.answer is None:
            raise TraceError("no answer is recorded, so there is nothing to replay without a model")
        own = own_ids(turn, self.vocabulary.spelled, self.vocabulary.text)
        params = self._params(turn, own, max_tokens)
        order = self._order(turn, options, params, caller)
        if own and turn.prompt and max(turn.prompt) < len(self.vocabulary) and options == asked_of(turn):
            order = replace(order, prompt=list(turn.prompt))
        opened = self._chat.opened(order.prompt)
        fixed = options.get("json_whitespace") != "bounded"
        for held, guide, loosened in self._guides(options, order):
            plain = fixed and held == "schema"
            tokens = _walked(guide, own) if own else self._written(turn, guide, opened=opened, plain=plain)
            if tokens:
                recorded = Recorded(replace(order, guide=guide), tokens[: params.max_tokens])
                return Transcribed(recorded, held, loosened, bool(own))
        raise TraceError("the recorded answer is empty, or a call that was cut")

    def _params(self, turn: Turn, own: Sequence[int], most: int | None) -> SamplingParams:
        """So that the answer ends where it did: written from its text it has an end token, recorded ids may not."""
        if not own:
            return SamplingParams(max_tokens=most, seed=0)
        if "max_tokens" not in turn.params and own[-1] not in self.vocabulary.eos:
            most = min(most or len(own), len(own))
        return params_of(turn, most, own=True)

    def _order(self, turn: Turn, options: Options, params: SamplingParams, caller: str) -> Order:
        (order,), _ = self._asker.read(Ask(turn.messages, params, {**options, "caller": caller}))
        return order

    def _guides(self, options: Options, order: Order) -> Iterator[tuple[str, Guide, bool]]:
        """From what was asked to nothing at all, each where the one before it does not allow the answer."""
        yield held_to(options), order.guide, False
        if held_to(options) == "required":
            looser: Options = {**options, "tool_choice": "auto"}
            yield held_to(looser), self._guide(looser), False
        if options:
            yield "free", self._guide({}), True

    def _guide(self, options: Options) -> Guide:
        """What holds an answer to any prompt under these options."""
        (order,), _ = self._asker.read(Ask([{"role": "user", "content": ""}], SamplingParams(), options))
        return order.guide

    def _written(self, turn: Turn, guide: Guide, *, opened: bool, plain: bool) -> tuple[int, ...]:
        """The answer and its end in tokens that the guide allows; none if it allows no such answer."""
        cursor: Cursor | None = guide.start()
        tokens: list[int] = []
        for part in self._parts(turn, opened=opened, plain=plain):
            assert cursor is not None, "a part is only gone on from where the one before it ended"
            spelled, cursor = self._spelled(cursor, part)
            if cursor is None:
                return ()
            tokens += spelled
        end = next((token for token in self._ends if cursor and cursor.advance(token) is not None), None)
        return (*tokens, end) if tokens and end is not None else ()

    def _parts(self, turn: Turn, *, opened: bool, plain: bool) -> Iterator[_Part]:
        """The text that the model writes, from where the prompt stops."""
        (answer,) = read_messages([turn.answer or {}])
        form = self._chat.form
        thoughts, content, calls = answer.get("reasoning_content") or "", answer["content"], answer.get("tool_calls")
        marks = self._chat.reasoning
        if marks and (thoughts or opened):
            if not opened:
                yield _Part(marks.open, marked=True)
            yield _Part(f"{thoughts}\n" if thoughts else "\n")
            yield _Part(f"{marks.close}", marked=True)
            yield _Part("\n\n")
        elif thoughts:
            yield _Part(f"{thoughts}\n\n")
        if form.frames and not calls:
            yield _Part(form.frames[0], marked=True)
        if content:
            yield _Part(_plain_json(content) if plain else content)
        if calls:
            if content and not content.endswith("\n"):
                yield _Part("\n")
            functions = [call["function"] for call in calls]
            yield _Part(form.write([Written(each["name"], each["arguments"]) for each in functions]), marked=True)

    def _spelled(self, cursor: Cursor, part: _Part) -> tuple[list[int], Cursor | None]:
        """The part as the tokenizer splits it, and in other tokens where the guide wants them; no place if it can't."""
        rest, found = part.text.encode(), list[int]()
        while rest:
            before = len(found)
            for token in self._split(rest.decode(), marked=part.marked):
                following = cursor.advance(token)
                if following is None:
                    break
                cursor, rest = following, rest[len(self._spelling.text(token)) :]
                found.append(token)
            if rest:
                other = self._other(cursor, rest)
                if other is None:
                    return found, None
                token, cursor = other
                found.append(token)
                rest = rest[len(self._spelling.text(token)) :]
            assert len(found) > before, "each turn of the loop writes a token"
        return found, cursor

    def _split(self, text: str, *, marked: bool) -> list[int]:
        parts = self._markers.split(text) if marked and self._markers else [text]
        ids = self._ids if marked else {}
        return [token for part in parts for token in ([ids[part]] if part in ids else self.vocabulary.encode(part))]

    def _other(self, cursor: Cursor, rest: bytes) -> tuple[int, Cursor] | None:
        """The longest token with which the text may go on here, and the place behind it."""
        for size in range(min(len(rest), _LONGEST_TOKEN), 0, -1):
            whole = size == len(rest) or rest[size] & 0xC0 != 0x80  # not within a character
            for token in self._by_text.get(rest[:size], ()) if whole else ():
                if (following := cursor.advance(token)) is not None:
                    return token, following
        return None

    @cached_property
    def _by_text(self) -> Mapping[bytes, Sequence[int]]:
        found: dict[bytes, list[int]] = {}
        for token in range(len(self.vocabulary)):
            found.setdefault(self._spelling.text(token), []).append(token)
        return found


def _walked(guide: Guide, tokens: tuple[int, ...]) -> tuple[int, ...]:
    """The tokens, if the guide allows them; else none."""
    cursor: Cursor | None = guide.start()
    for token in tokens:
        cursor = cursor.advance(token) if cursor else None
    return tokens if cursor else ()


def _plain_json(text: str) -> str:
    """A document in the white space that the grammar wants; any other text as it is."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
