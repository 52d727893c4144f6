"""Tokenizers that come without a model."""

from __future__ import annotations

import base64

import pytest

from agentspec.errors import ModelError, ModelNotFoundError
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.models.tokenizer import load_tokenizer
from agentspec.models.tokenizer_file import find_tokenizer

MERGES = [b"he", b"ll", b"hell", b" w", b"or", b" wor", b"ld", b"12", b"123", b"  "]


@pytest.fixture
def ranks(tmp_path):
    file = tmp_path / "small.tiktoken"
    tokens = [*(bytes([byte]) for byte in range(256)), *MERGES]
    file.write_text("\n".join(f"{base64.b64encode(token).decode()} {rank}" for rank, token in enumerate(tokens)))
    return file


def test_tiktokens_ranks_split_text_as_tiktoken_does(ranks) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    tokens = [*(bytes([byte]) for byte in range(256)), *MERGES]
    gpt2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    theirs = tiktoken.Encoding(
        "x", pat_str=gpt2, mergeable_ranks={t: rank for rank, t in enumerate(tokens)}, special_tokens={}
    )
    text = "hello  world, 1234 don't ünïcode\n\n hell"

    vocabulary = Vocabulary.of(find_tokenizer(str(ranks)))
    assert vocabulary.encode(text) == theirs.encode(text)
    assert vocabulary.eos == {256 + len(MERGES)}


@pytest.mark.real_model
def test_a_models_tokenizer_is_the_one_that_its_engine_has(smollm2) -> None:
    ours, theirs = find_tokenizer(str(smollm2)), load_tokenizer(smollm2)
    turns = [{"role": "user", "content": "wörld"}, {"role": "assistant", "content": "1234"}]

    assert Vocabulary.of(ours).tokens == Vocabulary.of(theirs).tokens
    assert ours.eos_token_id == theirs.eos_token_id
    rendered = [each.apply_chat_template(turns, tokenize=False, add_generation_prompt=True) for each in (ours, theirs)]
    assert rendered[0] == rendered[1]


def test_what_is_no_tokenizer_is_one_clear_line(tmp_path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"tokenizer file .*none\.json does not exist"):
        find_tokenizer(str(tmp_path / "none.json"))
    (tmp_path / "x.txt").write_text("hello")
    with pytest.raises(ModelError, match=r"neither a tokenizer\.json nor a file of tiktoken's"):
        find_tokenizer(str(tmp_path / "x.txt"))
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ModelError, match=r"no tokenizer\.json"):
        find_tokenizer(str(tmp_path / "x.json"))
