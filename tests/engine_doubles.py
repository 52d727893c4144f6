"""Engines that write what a test tells them to: the real engine, grammar and parser on a scripted target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from toy_vocabulary import EOS, TV

from agentspec.chat.chat import Chat
from agentspec.config import EngineConfig
from agentspec.draft import Draft
from agentspec.engine.core import EngineCore
from agentspec.local.ask import Asker
from agentspec.local.engine import Engine
from agentspec.proposers.base import Context
from agentspec.proposers.registry import build_proposer
from agentspec.testing import FixedController, ScriptedProposer, ScriptedTarget

ANSWER_STARTS = b"assistant:"  # what a prompt without a chat template ends with


class ByteTokenizer:
    """A token for each byte, and no chat template."""

    chat_template = None

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return list(text.encode())

    def apply_chat_template(self, conversation: object, **options: object) -> str:
        raise NotImplementedError


def byte_asker() -> Asker:
    """Reads asks for the toy vocabulary."""
    tokenizer = ByteTokenizer()
    return Asker(tokenizer, TV, Chat(tokenizer, TV))


class ScriptedEngine(Engine):
    """An engine whose target goes on with `reply(prompt)`, byte by byte, then ends.

    Attributes:
        reply: May be set anew between requests.
        prompts: Each prompt that reached the target, as text, the latest last.
        target: Counts forwards.
    """

    def __init__(self, reply: str | Callable[[str], str], *, context_length: int = 4096) -> None:
        self.prompts: list[str] = []
        self.reply: Callable[[str], str] = (lambda prompt: reply) if isinstance(reply, str) else reply
        eos = frozenset({EOS})
        self.target = ScriptedTarget(self._logits, vocab_size=len(TV), eos=eos, context_length=context_length)
        control = FixedController(8)
        proposer = build_proposer(["grammar", "suffix"], vocabulary=TV, draft_model=None, judge=control)
        core = EngineCore(self.target, proposer, controller=control, config=EngineConfig(max_draft=8))
        super().__init__(core, byte_asker())

    def _logits(self, tokens: Sequence[int]) -> dict[int, float]:
        text = b"".join(TV.tokens[token] for token in tokens)
        prompt, start, written = text.rpartition(ANSWER_STARTS)
        asked = (prompt + start).decode()
        if asked not in self.prompts:
            self.prompts.append(asked)
        reply = self.reply(asked).encode()
        goes_on = reply.startswith(written) and len(written) < len(reply)
        return {reply[len(written)] if goes_on else EOS: 10.0}


@contextmanager
def scripted_engine(reply: str | Callable[[str], str], *, context_length: int = 4096) -> Iterator[ScriptedEngine]:
    """A scripted engine that is closed at the end."""
    with ScriptedEngine(reply, context_length=context_length) as engine:
        yield engine


def echo(tokens: Sequence[int]) -> dict[int, float]:
    """The logits of a target that repeats its prompt's last line."""
    prompt, _, written = bytes(token for token in tokens if token < 256).rpartition(ANSWER_STARTS)
    answer = prompt.rstrip().rpartition(b"\n")[2].partition(b": ")[2] or prompt
    return {answer[len(written)] if len(written) < len(answer) else EOS: 10.0}


class Guesser(ScriptedProposer):
    """Knows the script; its guesses behind the end are dropped, and where a grammar holds the answer all of them."""

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        return [self._guess(context) for context in contexts]

    def _guess(self, context: Context) -> Draft:
        tokens = list(context.tokens)
        for _ in range(min(4, context.budget)):
            tokens += echo(tokens)
        return Draft.chain(tokens[len(context.tokens) :], self.name, 0.9)


def echo_engine(*, speculate: bool = True, context_length: int = 4096) -> Engine:
    """An engine that answers with the last line of its prompt, and guesses four tokens of it at a time."""
    target = ScriptedTarget(echo, vocab_size=len(TV), eos=frozenset({EOS}), context_length=context_length)
    core = EngineCore(target, Guesser(name="guesser"), controller=FixedController(8), config=EngineConfig())
    return Engine(core, byte_asker(), speculate=speculate)
