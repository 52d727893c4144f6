"""An engine that answers with the last line of its prompt, one byte a token, and guesses four of them at a time."""

from __future__ import annotations

from collections.abc import Sequence

from toy_vocabulary import EOS, TV

from agentspec.chat.formats.hermes import HermesFormat
from agentspec.config import EngineConfig
from agentspec.draft import Draft
from agentspec.engine.core import EngineCore
from agentspec.local.ask import Asker
from agentspec.local.engine import Engine
from agentspec.proposers.base import Context
from agentspec.testing import FixedController, ScriptedProposer, ScriptedTarget

START = b"assistant:"


class ByteTokenizer:
    """No chat template: messages become lines `role: text`, and `assistant:` starts the answer."""

    chat_template = None

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return list(text.encode())


def echo(tokens: Sequence[int]) -> dict[int, float]:
    prompt, _, written = bytes(token for token in tokens if token < 256).rpartition(START)
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


def echo_asker() -> Asker:
    tokenizer = ByteTokenizer()
    return Asker(tokenizer, TV, HermesFormat(tokenizer, TV))  # type: ignore[arg-type]


def echo_engine(*, speculate: bool = True, context_length: int = 4096) -> Engine:
    target = ScriptedTarget(echo, vocab_size=len(TV), eos=frozenset({EOS}), context_length=context_length)
    core = EngineCore(target, Guesser(name="guesser"), controller=FixedController(8), config=EngineConfig())
    return Engine(core, echo_asker(), speculate=speculate)
