import json
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFWriter, quants
from safetensors.torch import load_file
from transformers import AutoTokenizer

from agentspec.errors import ModelNotFoundError, UnsupportedModelError
from agentspec.models.gguf import converted

SHAPES = {
    "token_embd": (260, 32),
    "output_norm": (32,),
    "blk.0.attn_norm": (32,),
    "blk.0.ffn_norm": (32,),
    "blk.0.attn_q": (32, 32),
    "blk.0.attn_k": (16, 32),
    "blk.0.attn_v": (16, 32),
    "blk.0.attn_output": (32, 32),
    "blk.0.ffn_gate": (64, 32),
    "blk.0.ffn_up": (64, 32),
    "blk.0.ffn_down": (32, 64),
}
TEMPLATE = "{{ messages[0].content }}"


def write(path: Path, *, architecture="llama", quantized=False, whole_numbers=False, drop=(), extra=()) -> Path:
    """A llama of one layer and 260 tokens: an end and a start token, the 256 bytes, `he` and `lo`."""
    writer = GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_block_count(1)
    writer.add_feed_forward_length(64)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["<|end|>", "<|start|>", *byte_letters(), "he", "lo"])
    writer.add_token_types([3, 3] + [1] * 258)
    writer.add_token_merges(["h e", "l o"])
    writer.add_eos_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_chat_template(TEMPLATE)
    random = np.random.default_rng(0)
    for name in [*(name for name in SHAPES if name not in drop), *extra]:
        weight = random.standard_normal(SHAPES.get(name, (8,))).astype(np.float32)
        weight = np.round(weight) if whole_numbers else weight
        if quantized and weight.ndim == 2:
            kind = GGMLQuantizationType.Q8_0
            writer.add_tensor(f"{name}.weight", quants.quantize(weight, kind), raw_dtype=kind)
        else:
            writer.add_tensor(f"{name}.weight", weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def byte_letters() -> list[str]:
    """GPT-2's letter for each byte: itself where it can be seen, else the next from 256 on."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return [chr(byte) if byte in seen else chr(256 + hidden.index(byte)) for byte in range(256)]


def test_an_unquantized_file_keeps_every_bit_and_brings_tokenizer_and_template(cache, tmp_path):
    folder = converted(write(tmp_path / "tiny.gguf"))

    random = np.random.default_rng(0)
    embedding = torch.from_numpy(random.standard_normal((260, 32)).astype(np.float32))
    assert torch.equal(load_file(folder / "model.safetensors")["model.embed_tokens.weight"], embedding)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer("hello")["input_ids"] == [258, 2 + ord("l"), 259]
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (1, 0)
    assert tokenizer.decode([258, 2 + ord("!")]) == "he!"
    assert not tokenizer.clean_up_tokenization_spaces
    assert tokenizer.chat_template == TEMPLATE
    assert json.loads((folder / "config.json").read_text())["eos_token_id"] == 0
    assert folder.is_relative_to(cache)


@pytest.mark.parametrize("kind", ["quantized", "whole_numbers"])
def test_a_quantized_file_and_one_that_loses_nothing_become_bfloat16(cache, tmp_path, kind):
    folder = converted(write(tmp_path / "tiny.gguf", **{kind: True}))

    assert {weight.dtype for weight in load_file(folder / "model.safetensors").values()} == {torch.bfloat16}


def test_a_file_is_converted_once_and_again_when_it_changes(cache, tmp_path):
    path = write(tmp_path / "tiny.gguf")
    first = converted(path)
    made = (first / "config.json").stat().st_mtime_ns

    assert converted(path) == first
    assert (first / "config.json").stat().st_mtime_ns == made
    assert converted(write(path, whole_numbers=True)) != first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"architecture": "mystery"}, "mystery"),
        ({"drop": ["blk.0.ffn_up"]}, "lacks weights: model.layers.0.mlp.up_proj.weight"),
        ({"extra": ["rope_freqs"]}, "rotary embedding"),
    ],
)
def test_what_would_not_be_the_same_model_is_refused(cache, tmp_path, options, message):
    path = write(tmp_path / "tiny.gguf", **options)

    with pytest.raises(UnsupportedModelError, match=message) as refusal:
        converted(path)
    assert "\n" not in str(refusal.value)
    assert not any(file.is_file() and file.suffix != ".lock" for file in cache.rglob("*"))


def test_what_is_no_gguf_file_is_refused_before_anything_is_loaded(cache, tmp_path):
    (tmp_path / "page.gguf").write_text("<html>")

    with pytest.raises(ModelNotFoundError, match="is not a GGUF file: it begins with b'<htm'"):
        converted(tmp_path / "page.gguf")
    with pytest.raises(ModelNotFoundError, match="there is no file"):
        converted(tmp_path / "missing.gguf")
    with pytest.raises(ModelNotFoundError, match="can't be read"):
        converted(tmp_path)
