"""The target's logits against transformers' own, and law 4: K/V after any commits equals a fresh prefill."""

from __future__ import annotations

import copy
import random
import weakref

import pytest
import torch
from transformers import (
    Gemma2Config,
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    Phi3Config,
    PhiConfig,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
    SmolLM3Config,
)
from transformers.models.auto.modeling_auto import AutoModelForCausalLM

from agentspec.draft import EMPTY, ROOT, Draft
from agentspec.errors import ModelError, PromptTooLongError
from agentspec.models.base import Row
from agentspec.models.hf import HFTarget
from agentspec.models.prepack import HalfLinear, PackedLinear, exact_scale, prepack_linears
from agentspec.models.toy import tiny_target

SHAPE = {
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
    "pad_token_id": 0,
}
SLIDING = ["sliding_attention", "full_attention"] * 2
FAMILIES: dict[str, PreTrainedConfig] = {
    "llama": LlamaConfig(**SHAPE),
    "qwen2": Qwen2Config(**SHAPE),
    "qwen2-window": Qwen2Config(**SHAPE, use_sliding_window=True, sliding_window=9, max_window_layers=2),
    "qwen3": Qwen3Config(**SHAPE, head_dim=32),
    "mistral": MistralConfig(**SHAPE, sliding_window=9),
    "gemma2": Gemma2Config(**SHAPE, head_dim=16, sliding_window=9, layer_types=SLIDING, attn_logit_softcapping=5.0),
    "gemma3": Gemma3TextConfig(**SHAPE, head_dim=16, sliding_window=9, layer_types=SLIDING),
    "phi": PhiConfig(**SHAPE),
    "phi3": Phi3Config(**SHAPE, sliding_window=9),
    "smollm3": SmolLM3Config(**SHAPE, no_rope_layers=[1, 1, 1, 0]),
}
TREE = Draft((5, 6, 7, 8, 9), (ROOT, 0, ROOT, 0, 2), (0.5,) * 5, ("test",) * 5)


def build(config: PreTrainedConfig) -> PreTrainedModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return AutoModelForCausalLM.from_config(
            copy.deepcopy(config), attn_implementation="eager", dtype=torch.float32
        ).eval()


@pytest.fixture(scope="module", params=FAMILIES)
def pair(request: pytest.FixtureRequest) -> tuple[HFTarget, PreTrainedModel]:
    """Our target and transformers' own model with the same weights."""
    config = FAMILIES[request.param]
    own = build(config)
    return HFTarget(build(config)), own


def tokens_of(seed: int, size: int) -> list[int]:
    return random.Random(seed).choices(range(320), k=size)


@torch.inference_mode()
def expect(own: PreTrainedModel, tokens: list[int], draft: Draft = EMPTY) -> torch.Tensor:
    """Each place's logits by transformers alone: one plain forward a path."""
    paths = [()] + [draft.path(node) for node in range(len(draft))]
    texts = [tokens + [draft.tokens[node] for node in path] for path in paths]
    return torch.stack([own(input_ids=torch.tensor([text]), use_cache=False).logits[0, -1] for text in texts])


def agree(ours: torch.Tensor, own: torch.Tensor) -> None:
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours, own, atol=1e-4, rtol=1e-4)
    assert ours.argmax(-1).tolist() == own.argmax(-1).tolist()


def advance(target: HFTarget, slot: object, tokens: list[int]) -> None:
    row = Row(slot, slot.sync(tokens))
    target.forward([row])
    slot.commit(row, ())


def test_every_row_of_a_ragged_batch_equals_transformers(pair: tuple[HFTarget, PreTrainedModel]) -> None:
    target, own = pair
    texts = [tokens_of(1, 45), tokens_of(2, 14), tokens_of(3, 1), tokens_of(4, 20)]
    drafts = [Draft.chain([4, 5, 6], "test"), TREE, EMPTY, EMPTY]
    slots = [target.open() for _ in texts]
    advance(target, slots[0], texts[0][:38])
    advance(target, slots[0], texts[0][:44])
    advance(target, slots[1], texts[1][:13])
    rows = [Row(s, s.sync(text), draft) for s, text, draft in zip(slots, texts, drafts, strict=True)]
    assert [row.width for row in rows] == [4, 6, 1, 20]
    agree(target.forward(rows).logits, torch.cat([expect(own, t, d) for t, d in zip(texts, drafts, strict=True)]))


def test_fixed_widths_give_the_same_whatever_fills_them(pair: tuple[HFTarget, PreTrainedModel]) -> None:
    target, own = pair
    static = HFTarget(target.model, static_widths=(8, 16))
    slot, text = static.open(), tokens_of(8, 30)
    for end in (3, 12, 29):
        advance(static, slot, text[:end])
    row = Row(slot, slot.sync(text), TREE)
    agree(static.forward([row]).logits, expect(own, text, TREE))
    slot.commit(row, (0, 1))
    text = [*text, 5, 6, 40]
    agree(static.forward([Row(slot, slot.sync(text))]).logits, expect(own, text))


def random_draft(rng: random.Random, size: int) -> Draft:
    parents = [rng.randrange(ROOT, node) for node in range(size)]
    tokens = rng.sample(range(320), size)
    return Draft(tuple(tokens), tuple(parents), (0.5,) * size, ("test",) * size)


@pytest.mark.parametrize("seed", range(2))
def test_columns_after_any_commits_equal_a_fresh_prefill(pair: tuple[HFTarget, PreTrainedModel], seed: int) -> None:
    target, _ = pair
    rng = random.Random(seed)
    slot, text = target.open(), tokens_of(seed, 3)
    for _ in range(14):
        text = text + rng.choices(range(320), k=rng.choice((1, 1, 6)))
        draft = random_draft(rng, rng.randrange(6))
        path = draft.path(rng.randrange(ROOT, len(draft)))
        row = Row(slot, slot.sync(text), draft)
        target.forward([row])
        slot.commit(row, path)
        text = text + [draft.tokens[node] for node in path]
        if rng.random() < 0.3:
            text = text[: rng.randrange(2, len(text))]
    slot.sync([*text, 0])
    fresh = target.open()
    advance(target, fresh, list(slot.tokens))
    size = len(slot.tokens)
    for ours, clean in zip(
        slot.columns.keys + slot.columns.values, fresh.columns.keys + fresh.columns.values, strict=True
    ):
        torch.testing.assert_close(ours[:, :size], clean[:, :size], atol=1e-4, rtol=1e-4)


def test_long_prompts_and_growth_past_the_first_capacity() -> None:
    target = tiny_target()
    own = build(target.model.config)
    own.load_state_dict(target.model.state_dict())
    text, slot = tokens_of(5, 600), target.open()
    for end in (200, 255, 256, 300, 599):
        advance(target, slot, text[:end])
    row = Row(slot, slot.sync(text), TREE)
    agree(target.forward([row]).logits, expect(own, text, TREE))
    assert slot.columns.capacity == 1024


def test_a_fork_and_its_origin_do_not_see_each_other() -> None:
    target, text = tiny_target(), tokens_of(6, 12)
    slot = target.open()
    advance(target, slot, text)
    twin = slot.fork(8)
    before = [keys[:, :12].clone() for keys in slot.columns.keys]
    advance(target, twin, [*text[:8], 1, 2, 3])
    assert list(twin.tokens) == [*text[:8], 1, 2, 3]
    assert list(slot.tokens) == text
    assert all(torch.equal(keys[:, :12], kept) for keys, kept in zip(slot.columns.keys, before, strict=True))
    slot.close()
    slot.close()
    assert len(twin.fork().tokens) == 11


def test_sync_keeps_the_shared_prefix_and_always_leaves_one_pending() -> None:
    target = tiny_target()
    slot = target.open()
    advance(target, slot, [1, 2, 3, 4])
    assert list(slot.sync([1, 2, 3, 4])) == [4]
    assert list(slot.sync([1, 2, 9, 4, 5])) == [9, 4, 5]
    assert list(slot.tokens) == [1, 2]
    with pytest.raises(ValueError, match="no tokens"):
        slot.sync([])


@pytest.mark.parametrize("half", [True, False])
def test_prepacked_layers_give_the_same_and_leave_no_second_weight(half: bool) -> None:
    plain, target = tiny_target(), tiny_target()
    for model in (plain.model, target.model):
        model.to(torch.bfloat16).to(torch.float32)
    weights = [weakref.ref(module.weight) for module in target.model.modules() if isinstance(module, torch.nn.Linear)]
    assert prepack_linears(target.model, half=half) == len(weights) == 15
    assert not any(weight() is not None for weight in weights)
    kinds = {type(module) for module in target.model.modules()} & {torch.nn.Linear, HalfLinear, PackedLinear}
    assert kinds == {HalfLinear if half else PackedLinear}
    for size, draft in ((40, TREE), (1, EMPTY)):
        ours, own = (Row(t.open(), tokens_of(7, size), draft) for t in (target, plain))
        agree(target.forward([ours]).logits, plain.forward([own]).logits)


def test_a_weight_is_kept_in_16_bits_only_where_none_of_it_is_lost() -> None:
    assert exact_scale(torch.tensor([[0.75, -(2.0**-26)]])) == 2.0**15
    assert exact_scale(torch.tensor([[1.0, 2.0**-40]])) is None
    assert exact_scale(torch.tensor([[1.0 + 2.0**-12]])) is None
    assert exact_scale(torch.zeros(2, 2)) is None
    linear = torch.nn.Linear(3, 1)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[2.0**-20, 3.0, 0.5]]))
        linear.bias.fill_(0.25)
        assert HalfLinear(linear, 2.0**13)(torch.tensor([[2.0**20, 1.0, 4.0]])).tolist() == [[6.25]]


def test_bad_rows_are_refused_in_one_line() -> None:
    target = tiny_target(context=16)
    slot = target.open()
    with pytest.raises(ModelError, match="token id 320 is outside"):
        target.forward([Row(slot, [320])])
    with pytest.raises(PromptTooLongError, match="17 tokens don't fit into the model's context of 16"):
        target.forward([Row(slot, [1] * 17)])
    with pytest.raises(ValueError, match="share a slot"):
        target.forward([Row(slot, [1]), Row(slot, [2])])
    row = Row(slot, [1], TREE)
    target.forward([row])
    with pytest.raises(ValueError, match="not a path"):
        slot.commit(row, (0, 2))
