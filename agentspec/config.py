"""Values that a caller sets: how to sample, and how the engine may use the machine."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self

from agentspec.errors import ConfigError, check_text


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How the target picks each token, and when it stops.

    Every parameter acts on every place of a verified draft, with that place's own history. The order is: end tokens
    held back (`min_tokens`), bad words, `logit_bias`, penalties, grammar, temperature, then `top_k`, `top_p`, `min_p`.

    Attributes:
        max_tokens: The most tokens to write, end token included, at least 1; None: until the context is full.
        min_tokens: No end token, and no stop string, before this many tokens.
        temperature: 0 takes the likeliest token (the lowest id on a tie); up to 100.
        top_k: Only the k likeliest tokens; 0: all.
        top_p: Only the likeliest tokens whose chances sum to at least this, in (0, 1].
        min_p: Only tokens at least this likely, relative to the likeliest, in [0, 1).
        repetition_penalty: Divides (positive) or multiplies (negative) the logits of tokens of prompt and output, > 0.
        frequency_penalty: Taken from a logit for each time its token was written, in [-2, 2].
        presence_penalty: Taken once from the logit of each token that was written, in [-2, 2].
        logit_bias: Added to the logits of these token ids, each in [-100, 100]; -100 bans the token.
        bad_words: Never written: token ids in sequence, or text, which is held back in the spellings that the
            tokenizer gives it with and without a space before.
        stop: Text ends just before the first of these strings; a string alone counts as one.
        stop_token_ids: End the output as the model's own end token does.
        seed: Of the noise; the same seed, prompt and model give the same tokens. None: a new one for each request.
        n: How many answers, each with its own noise.
        logprobs: With each token, its log-probability under the model's unprocessed logits, and of this many likeliest
            tokens, 0 to 20; None: none.
    """

    max_tokens: int | None = None
    min_tokens: int = 0
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    bad_words: Sequence[str | tuple[int, ...]] = ()
    stop: str | Sequence[str] = ()
    stop_token_ids: Sequence[int] = ()
    seed: int | None = None
    n: int = 1
    logprobs: int | None = None

    def __post_init__(self) -> None:
        _tuple_of(self, "stop", (self.stop,) if isinstance(self.stop, str) else self.stop)
        _tuple_of(self, "bad_words", self.bad_words)
        _tuple_of(self, "stop_token_ids", self.stop_token_ids)
        object.__setattr__(self, "logit_bias", _bias(self.logit_bias))
        for name, (allowed, holds) in _RANGES.items():
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            whole = name in _WHOLE
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
                raise ConfigError(f"{name} must be {'a whole' if whole else 'a'} number, not {value!r}")
            if not ((whole or _finite(value)) and holds(value)):
                raise ConfigError(f"{name} must be {allowed}, not {value!r}")
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise ConfigError(f"min_tokens {self.min_tokens} is more than max_tokens {self.max_tokens}: lower it")
        for text in self.stop:
            if not isinstance(text, str) or not text:
                raise ConfigError(f"stop must hold non-empty strings, not {text!r}")
            check_text(text, "stop")
        for word in self.bad_words:
            if not ((isinstance(word, str) and word) or (isinstance(word, tuple) and word and all(map(_is_id, word)))):
                raise ConfigError(f"bad_words must hold non-empty strings or tuples of token ids, not {word!r}")
            if isinstance(word, str):
                check_text(word, "bad_words")
        for token in self.stop_token_ids:
            if not _is_id(token):
                raise ConfigError(f"stop_token_ids must hold token ids, not {token!r}")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """From named values; an unknown name is refused.

        Raises:
            ConfigError: A name is unknown or a value out of range.
        """
        names = [item.name for item in dataclasses.fields(cls)]
        for name in values:
            if name not in names:
                raise ConfigError(f"sampling parameter {name!r} is not supported; there are: {', '.join(names)}")
        return cls(**values)


def _tuple_of(params: SamplingParams, name: str, value: object) -> None:
    if not isinstance(value, Sequence) or (name != "stop" and isinstance(value, str | bytes)):
        raise ConfigError(f"{name} must be a list, not {value!r}")
    items = (tuple(item) if isinstance(item, list) else item for item in value)
    object.__setattr__(params, name, tuple(items))


_ID = re.compile("[0-9]{1,18}")
"""A token id as JSON's keys tell it."""


def _bias(given: object) -> dict[int, float]:
    if not isinstance(given, Mapping):
        raise ConfigError(f"logit_bias must map token ids to numbers, not {given!r}")
    bias: dict[int, float] = {}
    for token, value in given.items():
        key = int(token) if isinstance(token, str) and _ID.fullmatch(token) else token  # JSON's keys are text
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not _is_id(key) or not number or not -100 <= value <= 100:
            raise ConfigError(f"logit_bias maps token ids to numbers in -100..100, not {token!r} to {value!r}")
        bias[key] = float(value)
    return bias


def _is_id(token: object) -> bool:
    return isinstance(token, int) and not isinstance(token, bool) and token >= 0


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


_WHOLE = ("max_tokens", "min_tokens", "top_k", "seed", "n", "logprobs")
_OPTIONAL = ("max_tokens", "seed", "logprobs")
_RANGES: dict[str, tuple[str, Callable[[float], bool]]] = {
    "max_tokens": ("at least 1", lambda value: value >= 1),
    "min_tokens": ("at least 0", lambda value: value >= 0),
    "temperature": ("in 0..100", lambda value: 0 <= value <= 100),
    "top_k": ("at least 0 (0: all tokens)", lambda value: value >= 0),
    "top_p": ("above 0 and at most 1", lambda value: 0 < value <= 1),
    "min_p": ("at least 0 and below 1", lambda value: 0 <= value < 1),
    "repetition_penalty": ("above 0", lambda value: value > 0),
    "frequency_penalty": ("in -2..2", lambda value: -2 <= value <= 2),
    "presence_penalty": ("in -2..2", lambda value: -2 <= value <= 2),
    "seed": ("in -2**63..2**64-1", lambda value: -(2**63) <= value < 2**64),
    "n": ("in 1..128", lambda value: 1 <= value <= 128),
    "logprobs": ("in 0..20", lambda value: 0 <= value <= 20),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """How the engine uses the machine. In float32 none of it changes a token.

    Attributes:
        max_running: The most requests in one batch; others wait their turn.
        max_draft: The most draft nodes for one request and round; the controller goes below it where that is faster.
        budget: A fixed number of nodes for every draft instead of the adaptive one, at most `max_draft`: to compare.
        measure_cost: Measure at load what forwards cost here, in under 3 seconds, and keep that in the cache folder;
            off: start from what is typical, and learn.
        prefill_chunk: The most pending tokens of one request in one forward, of the draft model too.
        prefix_cache_tokens: Tokens kept in the K/V columns of finished requests, and as many again in the draft
            model's; the latest is kept whatever its size.
        strict: One request at a time, each prompt computed anew, every decoding forward as wide as the longest draft,
            and a context that is shorter by `max_draft`: plain and speculative decoding then share their arithmetic,
            and so their tokens, in 16-bit floats too.
        history: A file that finished answers are kept in, as a source of drafts for later processes with the same
            tokenizer. It holds what the model wrote. None: they are remembered while the engine lives.
        share_history: Draft for each caller from what all callers were answered. Off unless wanted: the time that an
            answer takes then tells something of what others were answered.
    """

    max_running: int = 8
    max_draft: int = 16
    budget: int | None = None
    measure_cost: bool = True
    prefill_chunk: int = 512
    prefix_cache_tokens: int = 16_384
    strict: bool = False
    history: str | PathLike[str] | None = None
    share_history: bool = False

    def __post_init__(self) -> None:
        for name, least in (
            ("max_running", 1),
            ("max_draft", 0),
            ("prefill_chunk", 1),
            ("prefix_cache_tokens", 0),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ConfigError(f"{name} must be a whole number of at least {least}, not {value!r}")
        for name in ("measure_cost", "strict", "share_history"):
            if not isinstance(value := getattr(self, name), bool):
                raise ConfigError(f"{name} must be True or False, not {value!r}")
        if self.history is not None and not isinstance(self.history, str | PathLike):
            raise ConfigError(f"history must be the path of a file, not {self.history!r}")
        if self.history is not None and "\0" in str(self.history):
            raise ConfigError(f"history must be the path of a file, which holds no NUL, not {str(self.history)!r}")
        size = self.budget
        if size is not None and (
            not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= self.max_draft
        ):
            raise ConfigError(f"budget must be None or a whole number in 0..{self.max_draft} (max_draft), not {size!r}")
