"""Tokenizers that come as one file, without a model: a `tokenizer.json`, or the ranks that tiktoken keeps."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentspec.errors import ModelError, ModelNotFoundError
from agentspec.grammar.vocabulary import BYTE_LETTERS
from agentspec.models.embedded import KNOWN, resolve

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_ENDS = ("<|im_end|>", "<|eot_id|>", "<|return|>", "<end_of_turn>", "<|end|>", "</s>", "<eos>", "<|endoftext|>")
"""How end tokens are called, those that end a turn first."""

_PIECES = 4096
"""Of prompts whose tokens are kept."""

_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_WORDS = rf"{_ENDING}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}%s| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_BLANKS}"
_O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENDING}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENDING}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_BLANKS}"
)


class FileTokenizer:
    """A tokenizer of the `tokenizers` library with what a chat and a vocabulary read of one. It needs no torch.

    Args:
        backend: The library's.
        settings: Of its `tokenizer_config.json`: its special tokens by role.
        chat_template: Its own, if it has one.
    """

    def __init__(
        self, backend: Tokenizer, settings: Mapping[str, Any] | None = None, chat_template: str | None = None
    ) -> None:
        self.backend_tokenizer = backend
        self.chat_template = chat_template
        roles = {role: _name(item) for role, item in (settings or {}).items() if role.endswith("_token")}
        self._special = {role: name for role, name in roles.items() if name}
        self._piece = lru_cache(maxsize=_PIECES)(self._ids)

    @cached_property
    def added_tokens_decoder(self) -> Mapping[int, Any]:
        """Added tokens by id."""
        return self.backend_tokenizer.get_added_tokens_decoder()

    @cached_property
    def eos_token_id(self) -> int | None:
        """The end token: the one that is told, else found by its name."""
        names = filter(None, (self._special.get("eos_token"), *_ENDS))
        ids = (self.backend_tokenizer.token_to_id(name) for name in names)
        return next((token for token in ids if token is not None), None)

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """The tokens of a text."""
        if add_special_tokens or self._apart is None:
            return list(self.backend_tokenizer.encode(text, add_special_tokens=add_special_tokens).ids)
        return [token for piece in self._apart.split(text) if piece for token in self._piece(piece)]

    def _ids(self, text: str) -> tuple[int, ...]:
        return tuple(self.backend_tokenizer.encode(text, add_special_tokens=False).ids)

    @cached_property
    def _apart(self) -> re.Pattern[str] | None:
        """Where special tokens cut a text, if what is between them is encoded the same by itself.

        Most messages of a prompt were in the one before it.
        """
        special = [item for item in self.added_tokens_decoder.values() if item.special]
        before = self.backend_tokenizer.pre_tokenizer
        state: bytes = b"" if before is None else before.__getstate__()
        alone = b'"ByteLevel"' in state and b'"add_prefix_space":true' not in state
        if not alone or any(item.lstrip or item.rstrip or item.single_word for item in special):
            return None
        names = sorted((re.escape(item.content) for item in special), key=len, reverse=True)
        return re.compile(f"({'|'.join(names)})") if names else None

    def apply_chat_template(self, conversation: list[dict[str, Any]], **options: Any) -> Any:  # noqa: ANN401
        """The conversation as text, by the chat template, which must be there."""
        from transformers.utils.chat_template_utils import render_jinja_template

        del options["tokenize"]
        (text,), _ = render_jinja_template(
            conversations=[conversation], chat_template=self.chat_template, **options, **self._special
        )
        return text


def find_tokenizer(name: str | None) -> Any:  # noqa: ANN401 (transformers is untyped)
    """A tokenizer by what may be named: a file, or what a model may be, of which nothing but the tokenizer is read.

    Args:
        name: A `tokenizer.json`, tiktoken's file, a folder, a known name, or a hub id; None: the embedded model's.

    Raises:
        ModelNotFoundError: Nothing is there.
        ModelError: It can't be read.
    """
    if name is not None and name not in KNOWN:
        path = Path(name).expanduser()
        if path.is_file() and path.suffix != ".gguf":
            return _of_file(path)
        if path.suffix in (".json", ".tiktoken") and not path.is_dir():
            raise ModelNotFoundError(f"tokenizer file {name} does not exist")
    model = resolve(name)
    file = Path(model) / "tokenizer.json"
    if file.is_file():
        return _of_file(file)
    from agentspec.models.tokenizer import load_tokenizer  # brings torch with some models

    return load_tokenizer(model)


def _of_file(path: Path) -> FileTokenizer:
    from tokenizers import Tokenizer

    text = path.read_bytes()
    if not text.lstrip().startswith(b"{"):
        return FileTokenizer(_of_ranks(_ranks(path, text)))
    try:
        backend = Tokenizer.from_str(text.decode())
    except Exception as error:  # the library raises nothing narrower
        raise ModelError(f"{path} is no tokenizer.json: {' '.join(str(error).split())[:200]}") from error
    found = FileTokenizer(backend, *_settings(path.parent))
    if found.eos_token_id is None:
        raise ModelError(f"{path} names no end token that is known: give the folder with its tokenizer_config.json")
    return found


def _settings(folder: Path) -> tuple[dict[str, Any], str | None]:
    """What stands beside a `tokenizer.json`: its settings, and its chat template."""
    file, template = folder / "tokenizer_config.json", folder / "chat_template.jinja"
    try:
        settings = json.loads(file.read_bytes()) if file.is_file() else {}
        own = template.read_text(encoding="utf-8") if template.is_file() else settings.get("chat_template")
    except (OSError, ValueError, AttributeError) as error:
        raise ModelError(f"{file} can't be read: {error}") from error
    if isinstance(own, list):  # several by name, as old files have them
        own = next((each.get("template") for each in own if each.get("name") == "default"), None)
    return settings, own


def _name(item: object) -> str:
    """Of a special token, told as text or as an object."""
    text = item.get("content") if isinstance(item, Mapping) else item
    return text if isinstance(text, str) else ""


def _ranks(path: Path, text: bytes) -> dict[bytes, int]:
    """What tiktoken's files hold: on each line a token's bytes in base64, and its rank, which is its id."""
    try:
        pairs = (line.split() for line in text.splitlines() if line)
        ranks = {base64.b64decode(token, validate=True): int(rank) for token, rank in pairs}
    except (ValueError, binascii.Error):
        ranks = {}
    if len({token for token in ranks if len(token) == 1}) != 256:
        raise ModelError(f"{path} is neither a tokenizer.json nor a file of tiktoken's, with a rank for each byte")
    return ranks


def _of_ranks(ranks: Mapping[bytes, int]) -> Tokenizer:
    """A byte-level BPE that merges the same pairs first, with an end token behind the last rank."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

    letters = {byte: letter for letter, byte in BYTE_LETTERS.items()}
    names = {token: token.decode("latin-1").translate(letters) for token in ranks}
    merges = [
        (names[left], names[right])
        for token in sorted(ranks, key=ranks.__getitem__)
        for left, right in sorted(_halves(token, ranks), key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
    ]
    found = Tokenizer(
        models.BPE({names[token]: rank for token, rank in ranks.items()}, merges, fuse_unk=False, ignore_merges=True)
    )
    found.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_pattern(len(ranks))), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    found.decoder = decoders.ByteLevel()
    found.add_special_tokens([AddedToken("<|endoftext|>", normalized=False, special=True)])
    return found


def _halves(token: bytes, ranks: Mapping[bytes, int]) -> list[tuple[bytes, bytes]]:
    pairs = ((token[:place], token[place:]) for place in range(1, len(token)))
    return [(left, right) for left, right in pairs if left in ranks and right in ranks]


def _pattern(size: int) -> str:
    """How a text is cut into words: the file doesn't say, and each family has its own number of ranks."""
    if size < 60_000:
        return _GPT2
    if size < 110_000:
        return _WORDS % "{1,3}"
    return _O200K if 190_000 < size < 202_000 else _WORDS % ""
