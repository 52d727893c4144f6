"""What an answer is, whole and while it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from agentspec.chat.base import Delta
from agentspec.engine.request import TokenLogprobs
from agentspec.trace import Stats, StepRecord

AnswerEnd = Literal["stop", "length", "tool_calls", "cancelled"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts, named as OpenAI names them. A draft that was accepted counts once, like any token.

    Attributes:
        cached_tokens: Prompt tokens that were in the prefix cache.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Prompt and completion."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Result:
    """A whole answer.

    Attributes:
        tokens: What the model wrote, its end token included.
        text: The same as text, cut before a stop string; with tools, calls stand in it as the model wrote them.
        message: The answer as an OpenAI message, ready to be appended to the conversation; calls that were cut off or
            can't be read are under `invalid_tool_calls`.
        finish_reason: "tool_calls" if there are calls to run, "length" if the limit or the context cut the answer.
        usage: Token counts.
        stats: Forwards, and what was drafted and accepted.
        seed: That gives this answer again.
        logprobs: One for each token, if they were asked for.
        alternatives: The other answers, with `n` above 1.
        rounds: What each round drafted, and what came of it, if they were asked for.
        stop_text: The stop string that ended the answer, if one did.
    """

    tokens: tuple[int, ...]
    text: str
    message: dict[str, Any]
    finish_reason: AnswerEnd
    usage: Usage
    stats: Stats
    seed: int
    logprobs: tuple[TokenLogprobs, ...] = ()
    alternatives: tuple[Result, ...] = field(default=(), repr=False)
    rounds: tuple[StepRecord, ...] = field(default=(), repr=False)
    stop_text: str | None = None


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """What is new in an answer.

    Attributes:
        text: More of `Result.text`; may be empty.
        deltas: The same as parts of the message.
        tokens: The tokens behind it; held-back text may come later than its tokens.
        logprobs: One for each token, if they were asked for.
        result: The whole answer, in its last event only.
        index: Which of the `n` answers, from 0.
    """

    text: str
    deltas: tuple[Delta, ...]
    tokens: tuple[int, ...]
    logprobs: tuple[TokenLogprobs, ...] = ()
    result: Result | None = None
    index: int = 0
