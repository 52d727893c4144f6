"""A tiny random target, built in memory in a blink: the real code path for tests and for trying things out."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from agentspec.models.hf import HFTarget


def tiny_target(
    vocab: int = 320, layers: int = 2, seed: int = 0, *, context: int = 2048, eos: Iterable[int] = ()
) -> HFTarget:
    """A Llama-shaped float32 model with random weights: hidden 64, 4 heads, 2 key/value heads, on the CPU.

    The same arguments give the same weights. It has no tokenizer; its weights are wide enough that picks differ.

    Args:
        vocab: Rows of the embedding.
        layers: Decoder layers.
        seed: Of the weights; the caller's own random state is left alone.
        context: The most tokens a sequence may hold.
        eos: Ids that end a sequence.
    """
    config = LlamaConfig(
        vocab_size=vocab,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        initializer_range=0.3,
        bos_token_id=None,
        eos_token_id=None,
        tie_word_embeddings=False,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config).to(torch.float32)
    return HFTarget(model, eos=eos)
