"""Takes an answer apart while it arrives: thoughts, text, calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentspec.chat.base import BrokenCallDelta, Delta, ReasoningDelta, TextDelta
from agentspec.chat.calls import BrokenCall, Calls, NoCall
from agentspec.chat.formats.base import ToolFormat
from agentspec.chat.tape import Steps, Tape
from agentspec.grammar.reasoned import Reasoning
from agentspec.grammar.tools import Tool


class AnswerParser:
    """The parser of one answer.

    One newline before a call belongs to its marker, and white space after a call, and around thoughts, to nothing. A
    call that can't be run is a `BrokenCallDelta`; but for markers, no text is lost.

    Args:
        form: How calls are written.
        tools: Those that may be called.
        calls: Whether there are any; without them, all but thoughts is text.
        reasoning: How thoughts are written; None: there are none.
        opened: Whether the prompt has begun the thoughts.
        held: Whether an answer that does not begin with a call has none in it, whatever its text looks like.
        new_id: Gives each call its id.
    """

    def __init__(
        self,
        form: ToolFormat,
        tools: Sequence[Tool],
        *,
        calls: bool = True,
        reasoning: Reasoning | None = None,
        opened: bool = False,
        held: bool = False,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        openings = form.openings if calls else ()
        self._form = form
        self._reasoning = reasoning
        self._either = held and calls
        begin = tuple(opening.text for opening in openings if opening.at_start)
        self._at_start = form.begins(tools) if self._either else begin
        self._openings = tuple(opening.text for opening in openings if not opening.at_start)
        self._hidden = form.hidden
        self._tape = Tape()
        self._calls = Calls(self._tape, tools, new_id=new_id or form.new_id)
        self._steps = self._answer(opened=opened)

    def feed(self, text: str) -> list[Delta]:
        """What is known after more of the text."""
        self._tape.text += text
        return self._run()

    def finish(self, *, cut: bool = False) -> list[Delta]:
        """What is left at the end: held-back text, or the part of a call that was cut off."""
        self._tape.ended = True
        # Behind a call comes another one or the end: what may begin its marker is no text.
        self._tape.cut = cut and self._calls.count > 0
        return self._run()

    def _run(self) -> list[Delta]:
        deltas: list[Delta] = []
        for delta in self._steps:
            if delta is None:
                break
            deltas.append(delta)
        return deltas

    def _answer(self, *, opened: bool) -> Steps[None]:
        if opened:
            yield from self._thoughts()
        called = yield from self._start()
        openings = self._openings if called or not self._either else ()
        calls = tuple("\n" + opening for opening in openings)
        again = (self._reasoning.open,) if self._reasoning is not None and self._reasoning.anywhere else ()
        while marker := (yield from self._tape.show(TextDelta, *calls, *openings, *self._hidden, *again)):
            if marker in self._hidden:
                self._tape.take(len(marker))
            elif marker in again:
                self._tape.take(len(marker))
                yield from self._thoughts()
            else:
                self._tape.take(len(marker) - len(marker.removeprefix("\n")))
                yield from self._call(marker.removeprefix("\n"))

    def _start(self) -> Steps[bool]:
        """Thoughts, and calls that are known as such at the start of an answer only; whether there were any."""
        thoughts = (self._reasoning.open,) if self._reasoning is not None else ()
        hidden = self._hidden if self._either else ()
        markers = sorted((*thoughts, *self._at_start, *hidden), key=len, reverse=True)
        while True:
            text = self._tape.text.lstrip()
            here = next((marker for marker in markers if text.startswith(marker)), "")
            longer = any(marker.startswith(text) and len(marker) > len(here) for marker in markers)
            if longer and (yield from self._tape.more()):
                continue
            if not here:
                return False
            self._tape.take(len(self._tape.text) - len(text))
            if here in self._at_start:
                yield from self._call(here)
                return True
            self._tape.take(len(here))
            if here in thoughts:
                yield from self._thoughts()

    def _thoughts(self) -> Steps[None]:
        """All up to the closing marker, without white space around it."""
        assert self._reasoning is not None
        close = self._reasoning.close
        yield from self._tape.space()
        while True:
            place = self._tape.text.find(close)
            shown = self._tape.text[:place] if place >= 0 else self._tape.text[: -self._held(close) or None]
            size = len(shown.rstrip())
            if size:
                yield ReasoningDelta(self._tape.take(size))
            elif place >= 0:
                self._tape.take(len(shown) + len(close))
                yield from self._tape.space()
                return
            elif not (yield from self._tape.more()):
                if left := self._tape.take(len(self._tape.text)).rstrip():
                    yield ReasoningDelta(left)
                return

    def _held(self, close: str) -> int:
        sizes = range(min(len(self._tape.text), len(close) - 1), 0, -1)
        return next((size for size in sizes if self._tape.text.endswith(close[:size])), 0)

    def _call(self, opening: str) -> Steps[None]:
        self._tape.record()
        try:
            yield from self._form.read(self._tape, self._calls)
        except NoCall:
            text = self._tape.recorded or self._tape.take(len(opening))
            yield TextDelta(text)
            return
        except BrokenCall:
            rest, _ = yield from self._tape.until(*self._form.marks.closes)
            if self._calls.open:
                yield BrokenCallDelta(self._calls.count - 1, rest)
            else:
                recorded = self._tape.recorded
                for close in self._form.marks.closes:
                    recorded = recorded.removesuffix(close)
                yield BrokenCallDelta(None, recorded.removeprefix(opening if opening in self._openings else ""))
            self._calls.open = False
        yield from self._tape.space()


class TextParser:
    """The parser of an output that is no message: everything is text, whatever it looks like."""

    def feed(self, text: str) -> list[Delta]:
        """The text as it came."""
        return [TextDelta(text)] if text else []

    def finish(self, *, cut: bool = False) -> list[Delta]:
        """Nothing is held back."""
        return []
