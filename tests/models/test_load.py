"""What is refused at load, before any weight is read where the config says enough, and what a loaded target knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import (
    FalconH1Config,
    GptOssConfig,
    LlamaConfig,
    MambaConfig,
    PreTrainedConfig,
    Qwen3NextConfig,
    T5Config,
)

from agentspec.errors import ModelError, ModelNotFoundError, UnsupportedModelError
from agentspec.models.base import Row
from agentspec.models.load import load_target
from agentspec.models.tokenizer import load_tokenizer
from agentspec.models.toy import tiny_target
from agentspec.progress import stages


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A complete tiny model folder, without tokenizer; two end tokens."""
    model = tiny_target().model
    model.set_attn_implementation("eager")
    model.generation_config.eos_token_id = [5, 6]
    model.save_pretrained(tmp_path)
    return tmp_path


def test_a_folder_gives_the_same_target_packed_or_not(folder: Path) -> None:
    made = tiny_target()
    packed, plain = load_target(folder), load_target(folder, prepack=False)
    wanted = made.forward([Row(made.open(), [1, 2, 3])]).logits
    for target in (packed, plain):
        assert (target.vocab_size, target.context_length, target.eos) == (320, 2048, {5, 6})
        torch.testing.assert_close(target.forward([Row(target.open(), [1, 2, 3])]).logits, wanted, atol=1e-4, rtol=1e-4)


def test_what_loading_is_at_is_told_while_someone_listens(folder: Path) -> None:
    told: list[str] = []
    with stages(told.append):
        load_target(folder)
    load_target(folder)
    assert told == [f"reading the weights of {folder.name}, 0.0 GB", "laying them out for forwards of few tokens"]


CONFIGS: dict[str, tuple[PreTrainedConfig, str]] = {
    "recurrent": (
        MambaConfig(num_hidden_layers=1),
        "mamba has layers of type linear_attention, which can't be cut back",
    ),
    "hybrid": (FalconH1Config(num_hidden_layers=1), "falcon_h1 has .* which can't be cut back"),
    "linear attention": (Qwen3NextConfig(num_hidden_layers=4), "layers of type linear_attention"),
    "encoder-decoder": (T5Config(num_layers=1), "t5 is an encoder-decoder model"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_an_architecture_that_cannot_be_cut_back_is_refused_from_its_config(name: str, tmp_path: Path) -> None:
    config, message = CONFIGS[name]
    config.save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModelError, match=message) as refusal:
        load_target(tmp_path)
    assert "\n" not in str(refusal.value)


def test_attention_sinks_are_refused(tmp_path: Path) -> None:
    from transformers import GptOssForCausalLM

    config = GptOssConfig(
        vocab_size=320,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        num_local_experts=2,
        num_experts_per_tok=1,
        pad_token_id=0,
        eos_token_id=None,
        layer_types=["sliding_attention", "full_attention"],
    )
    GptOssForCausalLM(config).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModelError, match="s_aux"):
        load_target(tmp_path)


def test_missing_models_and_files_say_what_to_do(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"/nowhere does not exist"):
        load_target(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="has no tokenizer"):
        load_tokenizer(folder)
    weights = folder / "model.safetensors"
    torch.save({}, folder / "pytorch_model.bin")
    weights.unlink()
    with pytest.raises(ModelError, match=r"only in pickle files \(pytorch_model.bin\)"):
        load_target(folder)
    (folder / "config.json").unlink()
    with pytest.raises(ModelNotFoundError, match=r"has no config.json"):
        load_target(folder)


def test_weights_that_do_not_fit_the_config_are_never_filled_with_noise(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(ModelError, match=r"missing keys: model\.layers\.2"):
        load_target(folder)


def test_rotary_frequencies_that_change_with_length_end_the_context_where_they_change() -> None:
    from transformers import LlamaForCausalLM

    from agentspec.models.hf import HFTarget

    config = LlamaConfig(
        vocab_size=320,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        max_position_embeddings=512,
        rope_parameters={
            "rope_type": "dynamic",
            "factor": 4.0,
            "rope_theta": 10000.0,
            "original_max_position_embeddings": 128,
        },
    )
    assert HFTarget(LlamaForCausalLM(config)).context_length == 128


@pytest.mark.real_model
def test_smollm2_agrees_with_transformers(smollm2: Path) -> None:
    from transformers import AutoModelForCausalLM

    tokenizer = load_tokenizer(smollm2)
    tokens = tokenizer("def fibonacci(n):\n    if n < 2:")["input_ids"]
    target = load_target(smollm2, tokenizer=tokenizer)
    own = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32)
    with torch.inference_mode():
        wanted = own(input_ids=torch.tensor([tokens])).logits[0, -1]
    slot = target.open()
    first = Row(slot, tokens[:5])
    target.forward([first])
    slot.commit(first, ())
    logits = target.forward([Row(slot, tokens[5:])]).logits[-1]
    torch.testing.assert_close(logits, wanted, atol=1e-3, rtol=1e-3)
    assert tokenizer.eos_token_id in target.eos
