"""What each token id spells, in bytes: the ground that grammars, stop strings and streams stand on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Protocol

from llguidance import LLTokenizer, TokenizerWrapper

from agentspec.errors import ConfigError, UnsupportedModelError, VocabularyMismatchError

Encode = Callable[[str], Sequence[int]]

_SHORT, _KEPT = 128, 4096
"""Splits of so many texts of at most so many characters are kept: what grammars force comes again and again."""


class Backend(Protocol):
    """What is read of a tokenizer of the `tokenizers` library."""

    @property
    def decoder(self) -> object:
        """How tokens become text."""

    def get_vocab(self, with_added_tokens: bool = True) -> Mapping[str, int]:
        """Ids by name."""

    def encode(self, sequence: str, *, add_special_tokens: bool = True) -> Any:  # noqa: ANN401 (a Rust object)
        """Something with the token `ids` of a text."""


class FastTokenizer(Protocol):
    """What is read of a transformers `PreTrainedTokenizerFast`."""

    @property
    def backend_tokenizer(self) -> Any:  # noqa: ANN401 (a `Backend`; transformers is untyped)
        """The `Backend`."""

    @property
    def added_tokens_decoder(self) -> Mapping[int, Any]:
        """Added tokens by id, each with `content` and `special`."""

    @property
    def eos_token_id(self) -> int | None:
        """The end token."""


class Vocabulary:
    """The bytes of every token, the special tokens, the end tokens, and how text is split into tokens.

    Read-only after it is made, and compared by identity. Making one from a tokenizer of 152,000 tokens takes a fraction
    of a second, less than reading it back from a file and checking that file would.

    Attributes:
        tokens: The bytes of each id as text; empty where the id has none (special tokens, padding).
        special: Control tokens, by id, with the name that the tokenizer gives them. They are not text.
        whole: Texts that the tokenizer never splits, by id, such as a marker that is no control token.
        eos: Ids that end the output.
        canonical: Whether `encode` splits text as the model learned it, so that a grammar may force that split.
    """

    def __init__(
        self,
        tokens: Sequence[bytes | None],
        *,
        special: Mapping[int, str] | None = None,
        whole: Mapping[int, str] | None = None,
        eos: Iterable[int],
        encode: Encode | None = None,
    ) -> None:
        """From the bytes of each id.

        Args:
            tokens: Bytes of each id; None or empty where an id has no text.
            special: Names of the control tokens; their bytes are taken as none.
            whole: Texts that are never split.
            eos: Ids that end the output, at least one.
            encode: The tokenizer's own split of a text; without it the longest token wins, and no split is forced.

        Raises:
            ConfigError: There is no end token, or it is out of range.
        """
        self.special = dict(special or {})
        self.whole = dict(whole or {})
        self.tokens = tuple(b"" if i in self.special else text or b"" for i, text in enumerate(tokens))
        self.eos = frozenset(eos)
        self.canonical = encode is not None
        self._encode = encode
        self._controls = _any_of(self.special.values())
        self._known_split = lru_cache(maxsize=_KEPT)(self._split)
        if not self.eos or any(not 0 <= token < len(self.tokens) for token in self.eos):
            raise ConfigError(
                f"end tokens must be ids in 0..{len(self.tokens) - 1}, at least one, not {sorted(self.eos)}"
            )

    @classmethod
    def of(cls, tokenizer: FastTokenizer, *, eos: Iterable[int] = ()) -> Vocabulary:
        """From a Hugging Face fast tokenizer.

        Args:
            tokenizer: A `PreTrainedTokenizerFast`.
            eos: The model's end tokens, which count as well as the tokenizer's own; ids beyond the tokenizer are left
                out.

        Raises:
            UnsupportedModelError: The bytes of its tokens can't be told.
            ConfigError: Neither model nor tokenizer names an end token.
        """
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise UnsupportedModelError(f"a fast tokenizer (tokenizer.json) is needed, not {type(tokenizer).__name__}")
        added = tokenizer.added_tokens_decoder
        tokens = _table(backend, added)
        own = () if tokenizer.eos_token_id is None else (tokenizer.eos_token_id,)
        return cls(
            tokens,
            special={token: item.content for token, item in added.items() if item.special},
            whole={token: item.content for token, item in added.items() if not item.special and item.content},
            eos=[token for token in (*eos, *own) if token < len(tokens)],
            encode=_Splitter(backend, tokens),
        )

    def ending(self, eos: Iterable[int]) -> Vocabulary:
        """The same tokens, with these ids as end tokens too; ids beyond the tokenizer are left out."""
        ends = [*self.eos, *(token for token in eos if token < len(self))]
        return Vocabulary(self.tokens, special=self.special, whole=self.whole, eos=ends, encode=self._encode)

    def __len__(self) -> int:
        return len(self.tokens)

    def text(self, token: int) -> bytes:
        """The token's bytes; none where it is no text or the id is outside the vocabulary."""
        return self.tokens[token] if 0 <= token < len(self.tokens) else b""

    def texts(self, tokens: Iterable[int]) -> bytes:
        """The bytes of several tokens, one after the other."""
        table, size = self.tokens, len(self.tokens)
        return b"".join([table[token] for token in tokens if 0 <= token < size])

    def spelled(self, token: int) -> bytes:
        """The token's bytes, or a control token's name."""
        return self.text(token) or self.special.get(token, "").encode()

    def encode(self, text: str) -> list[int]:
        """Split `text`, all of it plain text: a control token's name in it is spelled out, never the token itself."""
        return list((self._known_split if len(text) <= _SHORT else self._split)(text))

    def _split(self, text: str) -> tuple[int, ...]:
        split = self._encode or self.engine.greedy_tokenize
        return tuple(token for part in self.apart(text) for token in split(part))

    def apart(self, text: str) -> list[str]:
        """`text` in parts, none of which holds a control token's whole name."""
        parts, start = [], 0
        while self._controls is not None and (found := self._controls.search(text, start)):
            parts.append(text[start : found.start() + 1])
            start = found.start() + 1
        return [*parts, text[start:]]

    def control(self, name: str) -> int | None:
        """The control token of this name, if there is one."""
        return next((token for token, known in self.special.items() if known == name), None)

    @cached_property
    def engine(self) -> LLTokenizer:
        """What llguidance needs to know of the tokens. Built at the first use."""
        return LLTokenizer(TokenizerWrapper(_Wrapped(self)), n_vocab=len(self), eos_token=sorted(self.eos))


def check_same_text(target: Vocabulary, draft: Vocabulary) -> None:
    """See that two models mean the same text by the same ids; more or fewer padding ids at the end are fine.

    Raises:
        VocabularyMismatchError: They differ; the message names the first id that does.
    """
    for token in range(max(len(target), len(draft))):
        ours, theirs = _named(target, token), _named(draft, token)
        if ours != theirs:
            raise VocabularyMismatchError(
                f"token {token} is {ours!r} for the target and {theirs!r} for the draft model: "
                "take a draft model with the target's tokenizer"
            )


def _named(vocabulary: Vocabulary, token: int) -> str | bytes:
    if token >= len(vocabulary):
        return b""
    return vocabulary.special.get(token, vocabulary.tokens[token])


class _Wrapped:
    """A vocabulary as llguidance wants to be told of it."""

    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.eos_token_id = min(vocabulary.eos)
        self.special_token_ids = sorted(vocabulary.special)
        self.tokens = list(vocabulary.tokens)
        for token, name in vocabulary.special.items():
            if token < len(self.tokens):
                self.tokens[token] = name.encode()

    def __call__(self, text: str) -> list[int]:
        if not isinstance(text, str):
            raise TypeError("llguidance probes with bytes and falls back to text")
        return self._vocabulary.encode(text) if self._vocabulary.canonical else []


class _Splitter:
    """A tokenizer's split of a text in the middle of other text: no marker before it, no space put in front."""

    _GUARD = "\x02"

    def __init__(self, backend: Backend, tokens: Sequence[bytes]) -> None:
        self._backend = backend
        self._tokens = tokens
        self._prepends = self._bytes(self._plain("a")) != b"a"
        self._guard = self._plain(self._GUARD)

    def __call__(self, text: str) -> list[int]:
        if not self._prepends:
            return self._plain(text)
        tokens = self._plain(self._GUARD + text)
        return tokens[len(self._guard) :] if tokens[: len(self._guard)] == self._guard else self._plain(text)

    def _plain(self, text: str) -> list[int]:
        return list(self._backend.encode(text, add_special_tokens=False).ids)

    def _bytes(self, tokens: Sequence[int]) -> bytes:
        return b"".join(self._tokens[token] for token in tokens)


def _any_of(names: Iterable[str]) -> re.Pattern[str] | None:
    longest_first = sorted(filter(None, names), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def _table(backend: Backend, added: Mapping[int, Any]) -> list[bytes]:
    names = backend.get_vocab(with_added_tokens=False)
    tokens = [b""] * (max(*names.values(), *added, 0) + 1)
    spell = _speller(backend.decoder)
    for name, token in names.items():
        tokens[token] = spell(name)
    for token, item in added.items():
        tokens[token] = item.content.encode()
    for token in range(len(tokens) - 1, -1, -1):
        if tokens[token] != b"[PAD%d]" % token:  # what a conversion from GGUF calls the rows past the vocabulary
            break
        tokens[token] = b""
    return tokens


def _speller(decoder: object) -> Callable[[str], bytes]:
    """How a token's name in the vocabulary is turned into its bytes, by the kind of decoder the tokenizer has."""
    state: bytes = b"null" if decoder is None else decoder.__getstate__()  # type: ignore[assignment]
    kinds = {item["type"] for item in _nested(json.loads(state))}
    if "ByteLevel" in kinds:
        return _byte_level
    if kinds & {"ByteFallback", "Metaspace"}:
        return _sentence_piece
    if not kinds - {"Fuse", "Replace", "Strip"}:
        return str.encode
    raise UnsupportedModelError(
        f"the bytes of this tokenizer's tokens can't be told (decoder {sorted(kinds)}): "
        "byte-level BPE and SentencePiece tokenizers are supported"
    )


def _nested(state: object) -> list[dict[str, Any]]:
    if not isinstance(state, dict):
        return []
    return [state, *(item for inner in state.get("decoders", ()) for item in _nested(inner))]


def _letters() -> dict[int, int]:
    """The letter that byte-level BPE (GPT-2) writes for each byte, and the byte it stands for."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: byte for byte in printable} | {0x100 + i: byte for i, byte in enumerate(others)}


BYTE_LETTERS = _letters()  # in the names of byte-level tokens


def _byte_level(name: str) -> bytes:
    try:
        return name.translate(BYTE_LETTERS).encode("latin-1")
    except UnicodeEncodeError:
        return name.encode()


def _sentence_piece(name: str) -> bytes:
    if len(name) == 6 and name.startswith("<0x") and name.endswith(">"):
        return bytes([int(name[3:5], 16)])
    return name.replace("\u2581", " ").encode()
