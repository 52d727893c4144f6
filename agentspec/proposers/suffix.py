"""Drafts from what was written before: this conversation, earlier answers, and a text that the caller expects."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentspec.draft import EMPTY, Draft
from agentspec.grammar.vocabulary import Vocabulary
from agentspec.models.prefix import shared_prefix
from agentspec.proposers.answers import AnswerStore
from agentspec.proposers.base import Context
from agentspec.proposers.expected import SOURCE, Expected
from agentspec.proposers.follow import Place, follow
from agentspec.proposers.index import LONGEST, SuffixIndex
from agentspec.proposers.respelled import escaped, respelled, unescaped, writes_escaped
from agentspec.segments import Segment
from agentspec.verify import Outcome

_MOST = 8
_OLDER = 0.9
_LONG = 16
_TRUST = {"suffix": 1.0, "escaped": 0.7, "answers": 0.5}
_SPELLED = (Segment.STRING_VALUE, Segment.CODE)
_LOOK_BACK = 48
_LAG = 256
_RESPELLED = 16_384
_IDLE_TOKENS = 65_536


class SuffixProposer:
    """Looks up where the last tokens stood before, and drafts what followed there.

    Its nodes name one of four sources: "suffix" is this request's own text; "escaped" the same in its other spelling,
    for a file that was read raw and is written back within a JSON string, or the reverse; "answers" is what earlier
    requests of the same caller were answered; "prediction" the text that the caller expects.

    Args:
        vocabulary: Of the target, for the other spelling.
        answers: The second store; default: one of its own.
    """

    name = "suffix"
    sources = (*_TRUST, SOURCE)

    def __init__(self, vocabulary: Vocabulary, answers: AnswerStore | None = None) -> None:
        self._vocabulary = vocabulary
        self._answers = AnswerStore() if answers is None else answers
        self._requests: dict[int, _Request] = {}
        self._idle: list[SuffixIndex] = []

    def propose(self, contexts: Sequence[Context]) -> Sequence[Draft]:
        """A tree for each context."""
        return [self._propose(context) for context in contexts]

    def learn(self, context: Context, draft: Draft, outcome: Outcome) -> None:
        """Nothing: the tokens themselves are the memory."""

    def finish(self, request_id: int, answer: Sequence[int]) -> None:
        """Add the answer to the second store, and keep the request's index for the conversation's next turn."""
        request = self._requests.pop(request_id, None)
        if request is None:
            return
        self._answers.add(request.caller, answer)
        self._idle.append(request.index)
        while len(self._idle) > 1 and sum(map(len, self._idle)) > _IDLE_TOKENS:
            del self._idle[0]

    def _propose(self, context: Context) -> Draft:
        request = self._requests.get(context.request_id)
        if request is None:
            request = _Request(context, self._index(context), self._vocabulary)
            self._requests[context.request_id] = request
        request.read(context)
        tail, end = context.tokens[-LONGEST:], len(context.tokens)
        places = [place for place in _places(request.index, tail, "suffix") if place.at < end]
        if (respelled := request.respelled(context)) is not None:
            places += _places(respelled, tail, "escaped")
        for index in self._answers.indexes(context.caller):
            places += _places(index, tail, "answers")
        if request.expected is not None:
            places += request.expected.places(context.tokens[max(context.prompt_length, end - LONGEST) :])
        return follow(context, places) if places else EMPTY

    def _index(self, context: Context) -> SuffixIndex:
        """An index for a new request, that of the conversation's last turn where it is known."""
        tokens = context.tokens[: len(context.tokens) - context.guessed]
        for place, idle in enumerate(self._idle):
            if 2 * shared_prefix(idle.tokens, tokens) > len(idle):
                index = self._idle.pop(place)
                index.follow(tokens)
                return index
        return SuffixIndex()


class _Request:
    """What is remembered of one request."""

    def __init__(self, context: Context, index: SuffixIndex, vocabulary: Vocabulary) -> None:
        self.caller = context.caller
        self.index = index
        self.expected = Expected(context.prediction, vocabulary) if context.prediction else None
        self._since: int | None = None  # where the string or code that is being written was first seen
        self._prompt_length = context.prompt_length
        self._vocabulary = vocabulary
        self._escaped = _Spelling(vocabulary, escaped)
        self._unescaped = _Spelling(vocabulary, unescaped)

    def read(self, context: Context) -> None:
        """Take up what was written since the last call."""
        known = len(context.tokens) - context.guessed
        if known <= len(self.index):
            return
        self.index.extend(context.tokens[len(self.index) : known])
        if self.expected is not None:
            self.expected.read(context.tokens[max(self._prompt_length, known - LONGEST) : known])

    def respelled(self, context: Context) -> SuffixIndex | None:
        """The other spelling of the text than the one that is written now, where that makes a difference."""
        if context.cursor.segment not in _SPELLED:
            self._since = self._since if context.guessed else None
            return None
        end = len(context.tokens)
        if self._since is None or self._since > end:
            self._since = end
        writes = writes_escaped(self._vocabulary, context.tokens[max(self._since, end - _LOOK_BACK) :])
        if writes is None:
            return None
        spelling = self._escaped if writes else self._unescaped
        spelling.read(self.index.tokens)
        return spelling.index


class _Spelling:
    """A request's text in another spelling, from where it was when that was first needed, never quite up to date."""

    def __init__(self, vocabulary: Vocabulary, respell: Callable[[str], str]) -> None:
        self.index = SuffixIndex()
        self._vocabulary = vocabulary
        self._respell = respell
        self._known = 0

    def read(self, tokens: list[int]) -> None:
        if len(tokens) - self._known >= _LAG or not self._known:
            new = tokens[max(self._known, len(tokens) - _RESPELLED) :]
            self.index.extend(respelled(self._vocabulary, new, self._respell))
            self._known = len(tokens)


def _places(index: SuffixIndex, tail: Sequence[int], source: str) -> list[Place]:
    """Where the tail goes on: a longer match counts for more, and of matches as long a later one."""
    tokens, trust = index.tokens, _TRUST[source]
    found = sorted(index.matches(tail, _MOST), key=_latest_first)
    return [
        Place(trust * 2.0 ** min(length, _LONG) * _OLDER**rank, length, tokens, at, source)
        for rank, (length, at) in enumerate(found)
    ]


def _latest_first(match: tuple[int, int]) -> int:
    return -match[1]
