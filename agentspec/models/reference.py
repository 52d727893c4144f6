"""transformers' own decoding of the same model, run as its users run it: what the benchmark compares with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from time import perf_counter
from typing import Literal, Self

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, DynamicCache, GenerationConfig, PreTrainedModel

from agentspec.models.cost import Step, filler
from agentspec.models.device import best_device
from agentspec.models.quiet import quiet
from agentspec.models.tokenizer import load_tokenizer

Mode = Literal["plain", "lookup", "assistant"]

_LOOKUP_TOKENS = 10


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """One greedy answer.

    Attributes:
        tokens: End token included.
        first_tokens: How many of them the first round gave.
        first_seconds: Until they were there: the prompt's prefill.
        seconds: Until the end.
    """

    tokens: tuple[int, ...]
    first_tokens: int
    first_seconds: float
    seconds: float


class Reference:
    """`generate` of transformers: sdpa attention, its default cache, greedy.

    Args:
        model: In evaluation mode.
        eos: Ids that end a sequence.
        draft: The assistant.
    """

    def __init__(self, model: PreTrainedModel, *, eos: Sequence[int], draft: PreTrainedModel | None = None) -> None:
        self._model = model
        self._draft = draft
        self._eos = list(eos)
        self.modes: tuple[Mode, ...] = ("plain", "lookup") if draft is None else ("plain", "lookup", "assistant")
        """What can be run: plain decoding, prompt lookup, and the draft model as assistant."""

    @classmethod
    def load(cls, model: str, draft: str | None = None) -> Self:
        """Load a model, and a draft model, on the device and in the dtype that our own loader takes by default.

        Raises:
            ModelError: One has no tokenizer.
        """
        loaded = _load(model)
        tokenizer = load_tokenizer(model)
        own = loaded.generation_config.eos_token_id
        eos = {tokenizer.eos_token_id, *([own] if isinstance(own, int) else own or ())} - {None}
        return cls(loaded, eos=sorted(eos), draft=None if draft is None else _load(draft))

    def run(self, prompt: Sequence[int], *, mode: Mode, max_tokens: int, exactly: bool = False) -> ReferenceRun:
        """Answer a prompt.

        Args:
            prompt: Token ids.
            mode: One of `modes`.
            max_tokens: The most tokens of the answer.
            exactly: No end token before so many.
        """
        config = GenerationConfig(
            do_sample=False,
            max_new_tokens=max_tokens,
            min_new_tokens=max_tokens if exactly else None,
            eos_token_id=self._eos,
            pad_token_id=self._eos[0] if self._eos else 0,
            prompt_lookup_num_tokens=_LOOKUP_TOKENS if mode == "lookup" else None,
        )
        inputs = torch.tensor([list(prompt)], device=self._model.device)
        clock = _Clock()
        with quiet(), torch.inference_mode():
            found = self._model.generate(
                inputs,
                attention_mask=torch.ones_like(inputs),
                generation_config=config,
                assistant_model=self._draft if mode == "assistant" else None,
                streamer=clock,
            )
        seconds = perf_counter() - clock.start
        tokens = tuple(found[0, len(prompt) :].tolist())
        return ReferenceRun(tokens, clock.first_tokens, clock.first_seconds, seconds)

    def step(self, context: int) -> Step:
        """A forward behind `context` tokens in its default cache, for `agentspec.models.cost`."""
        model, cache = self._model, DynamicCache(config=self._model.config)
        name = "cache" if "cache" in signature(model.forward).parameters else "past_key_values"
        size = model.get_input_embeddings().num_embeddings

        def run(tokens: Sequence[int]) -> None:
            inputs = torch.tensor([list(tokens)], device=model.device)
            with torch.inference_mode():
                model(inputs, **{name: cache}).logits[0, -1, 0].item()

        def step(width: int) -> None:
            run(filler(size, width))
            cache.crop(-width)

        run(filler(size, context))
        return step


class _Clock:
    """A streamer that notes when the first tokens are there."""

    def __init__(self) -> None:
        self.start = perf_counter()
        self.first_seconds = 0.0
        self.first_tokens = 0
        self._prompt_came = False

    def put(self, tokens: Tensor) -> None:
        if not self._prompt_came:  # transformers streams the prompt first
            self._prompt_came = True
        elif not self.first_tokens:
            self.first_seconds = perf_counter() - self.start
            self.first_tokens = tokens.numel()

    def end(self) -> None:
        pass


def _load(name: str) -> PreTrainedModel:
    device = best_device()
    with quiet():
        model = AutoModelForCausalLM.from_pretrained(
            name,
            dtype=torch.float32 if device.type == "cpu" else "auto",
            attn_implementation="sdpa",
            low_cpu_mem_usage=True,
            use_safetensors=True,
        )
    return model.to(device).eval()
