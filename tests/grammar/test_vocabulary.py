"""What tokens spell, for the kinds of tokenizers there are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from toy_vocabulary import EOS, TOKENS, TV

from agentspec.errors import ConfigError, UnsupportedModelError, VocabularyMismatchError
from agentspec.grammar.vocabulary import Vocabulary, check_same_text


def fast(backend: Tokenizer, special: dict[int, str], eos: int | None) -> SimpleNamespace:
    added = {token: AddedToken(name, special=True) for token, name in special.items()}
    return SimpleNamespace(backend_tokenizer=backend, added_tokens_decoder=added, eos_token_id=eos)


def byte_level() -> Tokenizer:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = {letter: token for token, letter in enumerate(letters)}
    names |= {"Ġa": 256, "[PAD257]": 257, "[PAD258]": 258}
    tokenizer = Tokenizer(models.BPE(names, [("Ġ", "a")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    return tokenizer


def sentence_piece() -> Tokenizer:
    names = {"<unk>": 0, "</s>": 1} | {f"<0x{byte:02X}>": byte + 2 for byte in range(256)}
    names |= {"\u2581": 258, "a": 259, "\u2581a": 260}
    tokenizer = Tokenizer(models.BPE(names, [("\u2581", "a")], byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return tokenizer


def test_byte_level_names_are_bytes_and_padding_has_no_text() -> None:
    vocabulary = Vocabulary.of(fast(byte_level(), {259: "<|end|>"}, 259))
    assert len(vocabulary) == 260
    assert sorted(vocabulary.tokens[:256]) == [bytes([byte]) for byte in range(256)]
    assert vocabulary.tokens[256:] == (b" a", b"[PAD257]", b"[PAD258]", b"")  # in the middle: someone's own tokens
    trailing = Vocabulary.of(fast(byte_level(), {}, 0))
    assert trailing.tokens[256:] == (b" a", b"", b"")
    assert vocabulary.control("<|end|>") == 259


def test_sentence_piece_names_are_bytes_and_no_space_is_put_in_front() -> None:
    vocabulary = Vocabulary.of(fast(sentence_piece(), {0: "<unk>", 1: "</s>"}, 1))
    assert vocabulary.tokens[258:] == (b" ", b"a", b" a")
    assert vocabulary.tokens[2 + 0xC3] == b"\xc3"
    assert vocabulary.encode("a a") == [259, 260]
    assert vocabulary.encode("é") == [2 + 0xC3, 2 + 0xA9]


def test_control_tokens_names_are_spelled_out() -> None:
    vocabulary = Vocabulary.of(fast(byte_level(), {259: "<|end|>"}, 259))
    tokens = vocabulary.encode("x<|end|> a")
    assert 259 not in tokens
    assert b"".join(vocabulary.tokens[token] for token in tokens) == b"x<|end|> a"
    assert vocabulary.apart("<|end|><|end|>") == ["<", "|end|><", "|end|>"]


def test_a_tokenizer_that_loses_bytes_is_refused() -> None:
    tokenizer = Tokenizer(models.WordPiece({"a": 0, "##b": 1}, unk_token="a"))
    tokenizer.decoder = decoders.WordPiece()
    with pytest.raises(UnsupportedModelError, match="WordPiece"):
        Vocabulary.of(fast(tokenizer, {}, 0))


def test_end_tokens_must_be_there() -> None:
    with pytest.raises(ConfigError, match=r"0\.\.1"):
        Vocabulary([b"a", b"b"], eos=[])
    assert Vocabulary.of(fast(byte_level(), {259: "<|end|>"}, 259), eos=[258, 9_999]).eos == {258, 259}


def test_vocabularies_may_differ_in_padding_only() -> None:
    padded = Vocabulary([*TOKENS, None, None], special=TV.special, eos=[EOS])
    check_same_text(TV, padded)
    check_same_text(padded, TV)
    other = Vocabulary([*TOKENS[:100], b"x", *TOKENS[101:]], special=TV.special, eos=[EOS])
    with pytest.raises(VocabularyMismatchError, match="token 100 is b'd' for the target and b'x' for the draft"):
        check_same_text(TV, other)
    renamed = Vocabulary(TOKENS, special={**TV.special, 257: "<|stop|>"}, eos=[EOS])
    with pytest.raises(VocabularyMismatchError, match="token 257"):
        check_same_text(TV, renamed)


@pytest.mark.real_model
@pytest.mark.parametrize("model", ["qwen2.5-coder-0.5b", "smollm2-135m"])
def test_every_token_spells_what_its_tokenizer_says(real_model: Callable[[str], Path], model: str) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(real_model(model))
    vocabulary = Vocabulary.of(tokenizer)
    spelled = [text.decode(errors="replace") for text in vocabulary.tokens]
    decoded = tokenizer.batch_decode([[token] for token in range(len(vocabulary))], skip_special_tokens=True)
    assert [token for token in range(len(vocabulary)) if spelled[token] not in ("", decoded[token])] == []
    assert sum(not text for text in spelled) < 300


def test_the_models_end_tokens_are_added_and_those_past_the_tokenizer_left_out() -> None:
    ended = TV.ending([10, 9_999])
    assert ended.eos == TV.eos | {10}
    assert (ended.tokens, ended.special) == (TV.tokens, TV.special)
    assert ended.encode("<|eos|>") == TV.encode("<|eos|>")
