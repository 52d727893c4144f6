"""transformers' decoding of a tiny model: every mode writes the greedy answer, and the clock reads in order."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from agentspec.models.reference import Reference


def tiny(seed: int = 0) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=256,
        initializer_range=0.3,
        bos_token_id=None,
        eos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config).eval()


def greedy(model: LlamaForCausalLM, prompt: list[int], length: int) -> tuple[int, ...]:
    tokens = list(prompt)
    for _ in range(length):
        tokens.append(int(model(torch.tensor([tokens])).logits[0, -1].argmax()))
    return tuple(tokens[len(prompt) :])


@pytest.mark.parametrize("mode", ["plain", "lookup", "assistant"])
def test_each_mode_writes_the_greedy_answer(mode):
    model, prompt = tiny(), [1, 2, 3, 1, 2, 3]
    reference = Reference(model, eos=[63], draft=tiny(1))

    found = reference.run(prompt, mode=mode, max_tokens=12)

    assert reference.modes == ("plain", "lookup", "assistant")
    assert found.tokens == greedy(model, prompt, 12)
    assert 1 <= found.first_tokens <= 12
    assert 0 < found.first_seconds <= found.seconds


def test_a_step_leaves_the_cache_as_it_was(monkeypatch):
    model = tiny()
    step = Reference(model, eos=[63]).step(context=20)
    positions = []
    model.model.layers[0].register_forward_pre_hook(
        lambda layer, args, kwargs: positions.append(kwargs["position_ids"][0].tolist()), with_kwargs=True
    )

    for width in (1, 4, 2):
        step(width)
    assert positions == [[20], [20, 21, 22, 23], [20, 21]]


def test_an_end_token_ends_the_answer_unless_the_length_is_exact():
    model, prompt = tiny(), [1, 2, 3]
    end = greedy(model, prompt, 3)[2]
    reference = Reference(model, eos=[end])

    short = reference.run(prompt, mode="plain", max_tokens=12)
    whole = reference.run(prompt, mode="plain", max_tokens=12, exactly=True)
    assert (short.tokens[-1], len(whole.tokens)) == (end, 12)
    assert len(short.tokens) <= 3
    assert reference.modes == ("plain", "lookup")
