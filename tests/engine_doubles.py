"""An engine that writes what a test tells it to: the real engine, grammar and parser on a scripted target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from toy_vocabulary import EOS, TV

from agentspec.chat.formats.hermes import HermesFormat
from agentspec.config import EngineConfig
from agentspec.engine.core import EngineCore
from agentspec.local.ask import Asker
from agentspec.local.engine import Engine
from agentspec.proposers.registry import build_proposer
from agentspec.testing import FixedController, ScriptedTarget

ANSWER_STARTS = b"assistant:"  # what a prompt without a chat template ends with


class ByteTokenizer:
    """A token for each byte, and no chat template."""

    chat_template = None

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return list(text.encode())

    def apply_chat_template(self, conversation: object, **options: object) -> str:
        raise NotImplementedError


class ScriptedEngine(Engine):
    """An engine whose target goes on with `reply(prompt)`, byte by byte, then ends.

    Attributes:
        prompts: Each prompt that reached the target, as text, the latest last.
        target: Counts forwards.
    """

    def __init__(self, reply: str | Callable[[str], str], *, context_length: int = 4096) -> None:
        self.prompts: list[str] = []
        self._reply = (lambda prompt: reply) if isinstance(reply, str) else reply
        eos = frozenset({EOS})
        self.target = ScriptedTarget(self._logits, vocab_size=len(TV), eos=eos, context_length=context_length)
        control = FixedController(8)
        proposer = build_proposer(["grammar", "ngram"], draft_model=None, eos=eos, chance=control.chance)
        core = EngineCore(self.target, proposer, controller=control, config=EngineConfig(max_draft=8))
        tokenizer = ByteTokenizer()
        super().__init__(core, Asker(tokenizer, TV, HermesFormat(tokenizer, TV)))

    def _logits(self, tokens: Sequence[int]) -> dict[int, float]:
        text = b"".join(TV.tokens[token] for token in tokens)
        prompt, start, written = text.rpartition(ANSWER_STARTS)
        asked = (prompt + start).decode()
        if asked not in self.prompts:
            self.prompts.append(asked)
        reply = self._reply(asked).encode()
        goes_on = reply.startswith(written) and len(written) < len(reply)
        return {reply[len(written)] if goes_on else EOS: 10.0}


@contextmanager
def scripted_engine(reply: str | Callable[[str], str], *, context_length: int = 4096) -> Iterator[ScriptedEngine]:
    """A scripted engine that is closed at the end."""
    with ScriptedEngine(reply, context_length=context_length) as engine:
        yield engine
