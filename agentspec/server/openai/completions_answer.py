"""Answers of `/v1/completions`, whole and in chunks, with OpenAI's own types."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from time import time
from typing import Any
from uuid import uuid4

from openai.types import Completion, CompletionChoice, CompletionUsage
from openai.types.completion_choice import Logprobs

from agentspec.engine.request import TokenLogprobs
from agentspec.local.result import Result, StreamEvent
from agentspec.server.openai.chat_answer import Spell
from agentspec.server.openai.fields import usage_of


class CompletionAnswer:
    """Writes one request's answers. Its chunks, added up, are the whole.

    Args:
        model: What the answer says that the model is called.
        spell: A token's bytes.
        echoes: For each choice, what its text begins with.
    """

    def __init__(self, model: str, spell: Spell, echoes: Sequence[str]) -> None:
        self._model = model
        self._spell = spell
        self._echoes = echoes
        self._id = f"cmpl-{uuid4().hex}"
        self._created = int(time())
        self._tokens = [_Tokens(spell) for _ in echoes]

    def whole(self, results: Sequence[Sequence[Result]]) -> dict[str, Any]:
        """The completion, from the results of each prompt."""
        choices = [
            self._choice(index, self._echoes[index] + result.text, result.logprobs, result)
            for index, result in enumerate(each for prompt in results for each in prompt)
        ]
        return self._wire(choices, usage=usage_of(*results))

    def opening(self) -> Iterator[dict[str, Any]]:
        """The chunks before anything is written: what is repeated of the prompts."""
        for index, echo in enumerate(self._echoes):
            if echo:
                yield self._wire([self._choice(index, echo)])

    def chunk(self, index: int, event: StreamEvent) -> dict[str, Any] | None:
        """What an event adds to a choice, if anything."""
        if not event.text and not event.logprobs and event.result is None:
            return None
        return self._wire([self._choice(index, event.text, event.logprobs, event.result)])

    def usage(self, results: Sequence[Sequence[Result]]) -> dict[str, Any]:
        """The last chunk, where it was asked for."""
        return self._wire([], usage=usage_of(*results))

    def _choice(
        self, index: int, text: str, logprobs: Sequence[TokenLogprobs] = (), result: Result | None = None
    ) -> CompletionChoice:
        return CompletionChoice.construct(
            index=index,
            text=text,
            logprobs=self._tokens[index].told(logprobs) if logprobs else None,
            finish_reason=None if result is None else result.finish_reason,
        )

    def _wire(self, choices: list[CompletionChoice], usage: CompletionUsage | None = None) -> dict[str, Any]:
        completion = Completion(
            id=self._id, object="text_completion", created=self._created, model=self._model, choices=choices
        )
        if usage is not None:
            completion.usage = usage
        # Without warnings: in a chunk before the last, OpenAI sends no finish reason, which their type does not know.
        return completion.to_dict(mode="json", exclude_unset=True, warnings=False)


class _Tokens:
    """The tokens of one answer, in order, and where in its text each begins."""

    def __init__(self, spell: Spell) -> None:
        self._spell = spell
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._length = 0

    def told(self, found: Sequence[TokenLogprobs]) -> Logprobs:
        """More of them, with their log-probabilities; a token's own is among the likeliest, wherever it ranks."""
        offsets = []
        for each in found:
            offsets.append(self._length)
            self._length += len(self._decoder.decode(self._spell(each.token)))
        return Logprobs(
            tokens=[self._name(each.token) for each in found],
            token_logprobs=[each.logprob for each in found],
            top_logprobs=[
                {self._name(token): chance for token, chance in {**each.top, each.token: each.logprob}.items()}
                for each in found
            ],
            text_offset=offsets,
        )

    def _name(self, token: int) -> str:
        """A token's text, or its bytes where they are no whole characters."""
        spelled = self._spell(token)
        try:
            return spelled.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in spelled)
