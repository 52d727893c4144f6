"""Grammars compiled by llguidance, and the immutable cursors over them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from llguidance import LLMatcher, regex_to_lark

from agentspec.errors import GrammarDeadEndError, GrammarError, check_text
from agentspec.grammar.base import Mask
from agentspec.grammar.masks import allows, end_mask, members, pack
from agentspec.grammar.regex_size import MOST_EXPANDED, expanded
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.segments import Segment

CACHED_GRAMMARS = 64
"""How many of the last compiled grammars are kept."""

_NO_WAY_ON = ("NoExtension", "NoExtensionBias")
_GBNF = re.compile(r"^\s*([A-Za-z][\w-]*)\s*::=", re.MULTILINE)
_MOST_FOLLOWING = 32
"""Behind forced text so many tokens are looked at; where more may come, such as in a string, none is."""


def lark_guide(vocabulary: Vocabulary, lark: str) -> LlgGuide:
    """A guide for a grammar in llguidance's dialect of Lark, whose start rule is `start`.

    Raises:
        GrammarError: It can't be compiled.
    """
    try:
        return compile_lark(vocabulary, lark)
    except GrammarError as error:
        if found := _GBNF.search(lark):
            raise GrammarError(
                f"the grammar is llama.cpp's GBNF ({found[1]} ::= ...), and Lark is needed: write `start: ...` for "
                "`root ::= ...`, or convert it with gbnf_to_lark of llguidance.gbnf_to_lark"
            ) from error
        raise


def regex_guide(vocabulary: Vocabulary, regex: str) -> LlgGuide:
    """A guide for output that matches `regex` as a whole, in the syntax of Rust's regex crate.

    Raises:
        GrammarError: It can't be compiled; look-around and back-references can't be enforced.
    """
    return compile_lark(vocabulary, f"start: {regex_rule(regex)}")


def regex_rule(regex: str) -> str:
    """The piece of a Lark rule that stands for a text which matches `regex` as a whole.

    Raises:
        GrammarError: It is too large, or no text.
    """
    check_text(regex, "the regex", GrammarError)
    if (size := expanded(regex)) > MOST_EXPANDED:
        raise GrammarError(f"the regex is {size:,} long with its repeats written out, at most {MOST_EXPANDED:,} may be")
    return f"/{regex_to_lark(regex or '(?:)', use_ascii='')}/"


@lru_cache(maxsize=CACHED_GRAMMARS)
def compile_lark(vocabulary: Vocabulary, lark: str) -> LlgGuide:
    """Compile a grammar, or take it from the last few that were; the exact text is the key.

    Raises:
        GrammarError: It can't be compiled.
    """
    check_text(lark, "the grammar", GrammarError)
    # Forcing narrows the mask to the tokenizer's own split; with no tokenizer there is no split to prefer.
    options = "" if vocabulary.canonical else '\n%llguidance {"no_forcing": true}'
    grammar = LLMatcher.grammar_from_lark(lark + options)
    matcher = LLMatcher(vocabulary.engine, grammar, log_level=0)
    if matcher.is_error():
        _, messages = LLMatcher.validate_grammar_with_warnings(grammar, vocabulary.engine)
        raise GrammarError(f"the grammar can't be used: {_one_line(' '.join(messages) or matcher.get_error())}")
    guide = LlgGuide(vocabulary, matcher, lark)
    _try(guide)
    return guide


def _try(guide: LlgGuide) -> None:
    """Write one token: a regex that explodes is compiled in no time, and found out by its first masks."""
    place = guide.start()
    tokens = np.flatnonzero(np.unpackbits(place.mask().view(np.uint8), bitorder="little"))
    place.advance(int(tokens[0]))


def _one_line(message: str) -> str:
    head = re.split(r"<state>|\n +\d+ \| ", message)[0]
    return " ".join(head.split()) or "llguidance gave no reason"


class LlgGuide:
    """A compiled grammar."""

    def __init__(self, vocabulary: Vocabulary, matcher: LLMatcher, lark: str) -> None:
        self.vocabulary = vocabulary
        self._matcher = matcher
        self._lark = lark

    def behind(self, heads: Sequence[str]) -> LlgGuide:
        """The guide for output that begins with one of `heads`, pieces of a Lark rule, and goes on as under this one.

        Raises:
            GrammarError: It can't be compiled.
        """
        return compile_lark(self.vocabulary, f"start: ({' | '.join(heads)}) %lark {{\n{self._lark}\n}}")

    def start(self) -> LlgCursor:
        """The place before the first token."""
        return LlgCursor(self.vocabulary, self._matcher.deep_copy())

    def after(self, text: bytes) -> LlgCursor | None:
        """The place after `text`, however it was split into tokens; None if the grammar does not begin with it."""
        try:
            return self.after_tokens(self.vocabulary.engine.greedy_tokenize(text.decode()))
        except UnicodeDecodeError:
            return None

    def after_tokens(self, tokens: Sequence[int]) -> LlgCursor | None:
        """The place after `tokens`, which need not be the split that a mask allows; None if they may not come."""
        matcher = self._matcher.deep_copy()
        if matcher.try_consume_tokens(tokens) < len(tokens):
            return None
        return LlgCursor(self.vocabulary, matcher)


class LlgCursor:
    """A place under a compiled grammar. What it has worked out once it keeps, so asking twice costs nothing.

    A token may follow exactly if the mask has it. The mask is the stricter of llguidance's two opinions: a matcher
    would also take other splits of text that is forced, which the mask leaves out.

    Args:
        vocabulary: Of the tokens.
        matcher: At the place, and moved no further.
        forced: The tokens that must come next, where the place before knows them.
    """

    __slots__ = ("_following", "_forced", "_mask", "_matcher", "_vocabulary")

    segment = Segment.PROSE

    def __init__(self, vocabulary: Vocabulary, matcher: LLMatcher, forced: tuple[int, ...] | None = None) -> None:
        self._vocabulary = vocabulary
        self._matcher = matcher
        self._mask: Mask | None = None
        self._forced = forced
        self._following: dict[int, LlgCursor | EndCursor | None] = {}

    @property
    def accepting(self) -> bool:
        """Whether the output may end here."""
        return bool(self._matcher.is_accepting())

    def mask(self) -> Mask:
        """The tokens that may follow, as 32 of them a word; ids without text are never among them.

        Raises:
            GrammarDeadEndError: There are none.
            GrammarError: The grammar has grown too complex to go on.
        """
        if self._mask is None:
            self._mask = self._compute_mask()
        return self._mask

    def advance(self, token: int) -> LlgCursor | EndCursor | None:
        """The place after `token`; None if it may not follow."""
        if token not in self._following:
            self._following[token] = self._after(token) if self._may_follow(token) else None
        return self._following[token]

    def forced(self, limit: int) -> tuple[int, ...]:
        """At most `limit` tokens that must come next, as the tokenizer splits them; without one, the likely split."""
        if self._forced is None:
            self._forced = self._compute_forced()
        return self._forced[:limit]

    def _may_follow(self, token: int) -> bool:
        """Whether the mask has `token`, as far as that is known without one: a mask takes ten times a token's time."""
        vocabulary = self._vocabulary
        if self._mask is not None or not vocabulary.text(token) or token in vocabulary.eos:
            return allows(self.mask(), token)
        if not vocabulary.canonical or not (forced := self.forced(2)):
            return True  # as far as the mask goes: the matcher has the last word
        return token == forced[0] or (len(forced) == 1 and allows(self.mask(), token))

    def _after(self, token: int) -> LlgCursor | EndCursor | None:
        if token in self._vocabulary.eos:
            return EndCursor(self._vocabulary)
        matcher = self._matcher.deep_copy()
        if not matcher.try_consume_tokens([token]):
            if self._mask is None and not matcher.is_error():
                return None
            raise GrammarError(f"the grammar can't go on after token {token}: {_one_line(matcher.get_error())}")
        return LlgCursor(self._vocabulary, matcher, self._forced_after(token))

    def _forced_after(self, token: int) -> tuple[int, ...] | None:
        """What is left of a split that is forced as a whole: it need not be split again."""
        if self._forced is None or self._forced[:1] != (token,) or not self._vocabulary.canonical:
            return None
        return self._forced[1:] or None

    def _compute_mask(self) -> Mask:
        if self._matcher.is_stopped() and self._matcher.is_accepting():
            return end_mask(self._vocabulary)
        if self._vocabulary.canonical and (forced := self.forced(2)):
            forcing = pack(self._vocabulary, forced[:1])
            return forcing if len(forced) > 1 else self._with_other_splits(forcing)
        matcher = self._matcher.deep_copy()  # one that fails at its mask goes on no more, which tokens may all the same
        mask: Mask = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint32)
        problem = _one_line(matcher.get_error()) if matcher.is_error() else ""
        if problem in _NO_WAY_ON or not (problem or mask.any()):
            raise GrammarDeadEndError(
                "no token of the vocabulary may come next: the grammar can't be completed with it"
            )
        if problem:
            raise GrammarError(f"the grammar can't go on: {problem}")
        return mask

    def _with_other_splits(self, mask: Mask) -> Mask:
        """The mask, and the tokens that the forced text begins with where it is split together with what may follow it.

        llguidance forces the split of that text alone, up to where a longer token may come; but `{}}` and `{}},` can
        part ways before that.
        """
        matcher = self._matcher.deep_copy()
        text: bytes = matcher.deep_copy().compute_ff_bytes()
        whole = self._split(text)
        if len(whole) < 2 or matcher.try_consume_tokens(whole) < len(whole) or matcher.is_stopped():
            return mask
        following = members(np.frombuffer(matcher.compute_bitmask(), dtype=np.uint32), _MOST_FOLLOWING)
        splits = (self._split(text + self._vocabulary.text(token)) for token in following)
        first = {split[0] for split in splits if split and text.startswith(self._vocabulary.text(split[0]))}
        return mask | pack(self._vocabulary, first)

    def _split(self, text: bytes) -> Sequence[int]:
        return self._vocabulary.encode(text.decode(errors="ignore"))

    def _compute_forced(self) -> tuple[int, ...]:
        if self._matcher.is_stopped():
            return tuple(self._vocabulary.eos) if self.accepting and len(self._vocabulary.eos) == 1 else ()
        if self._vocabulary.canonical:
            return tuple(self._matcher.compute_ff_tokens())
        return tuple(self._split(self._matcher.deep_copy().compute_ff_bytes()))  # which moves a matcher on


class EndCursor:
    """The place after the end token: nothing follows it, and whatever is drafted behind it is dropped."""

    __slots__ = ("_vocabulary",)

    segment = Segment.END
    accepting = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def advance(self, token: int) -> None:
        """Nothing follows."""
        return None

    def mask(self) -> Mask:
        """The end tokens: a row behind the end is computed with the others, and picks something that nobody reads."""
        return end_mask(self._vocabulary)

    def forced(self, limit: int) -> tuple[int, ...]:
        """Nothing is left to say."""
        return ()
