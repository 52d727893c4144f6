"""Tells the segment of what comes next in an answer that is being written; it enforces nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from agentspec.segment_reader import FENCE, LONGEST_NAME, TAIL, Reader, as_bytes
from agentspec.segments import CallMarks, Mode, Place, Segment

CODE_NAMES = frozenset(
    "code content contents diff file_text new_source new_str new_string new_text old_str old_string old_text patch "
    "program replace replacement script search snippet source source_code".split()
)
"""Arguments that hold code or a diff, by their names."""


@dataclass(frozen=True)
class Segmenter:
    """Knows by which texts one model's answers are divided.

    Free text has segments too: a fence opens code, a marker opens a call, and a bracket at the very start, or after a
    fence's first line `json`, opens JSON until it proves not to be.

    Attributes:
        calls: How tool calls are written. A marker of one character counts at the start of an answer only.
        reasoning: The texts around thoughts.
        frames: An answer may begin behind one of these: what comes before is none of it.
        document: Whether the whole answer is held to be one JSON value.
        called: Whether the answer is held to be calls, but for thoughts before them.
        code_names: Arguments whose text is code, besides `CODE_NAMES`.
    """

    calls: CallMarks = field(default_factory=CallMarks)
    reasoning: tuple[str, str] = ("<think>", "</think>")
    frames: tuple[str, ...] = ()
    document: bool = False
    called: bool = False
    code_names: frozenset[str] = frozenset()

    def start(self, *, reasoning: bool = False) -> Place:
        """The place before the first token; `reasoning` where the prompt has opened the thoughts already."""
        return Place("reasoning" if reasoning else self.begins)

    @cached_property
    def turning(self) -> Mapping[Mode, frozenset[str]]:
        """The characters after which a run of a mode may be over, for the modes that run."""
        value = self.calls.raw_value or ("", "", "")
        markers: dict[Mode, tuple[str, ...]] = {
            "prose": (*self.calls.opens, *self.frames, self.reasoning[0], FENCE),
            "reasoning": (self.reasoning[1],),
            "code": (FENCE,),
            "raw": (value[2],),
        }
        return {mode: frozenset(as_bytes(each)[-1] for each in ends if each) for mode, ends in markers.items()}

    @property
    def begins(self) -> Mode:
        """The part that an answer begins with, and goes on with behind its thoughts."""
        if self.called:
            return "frame"
        return "json" if self.document and not self.frames else "start"

    def advance(self, place: Place, text: bytes) -> Place:
        """The place after `text`, which may end inside a character."""
        characters = text.decode("latin-1")  # markers are compared byte by byte, so no character is ever cut
        if _runs_on(self, place, characters):
            word = (place.word + characters)[-LONGEST_NAME:] if place.string else place.word
            return place._replace(word=word, tail=(place.tail + characters)[-TAIL:])
        return Reader(self, place).read(characters)

    def segment(self, place: Place) -> Segment:
        """The kind of text that the next token belongs to."""
        if place.string or place.mode == "raw":
            return self._string(place)
        if place.mode in _BY_MODE:
            return _BY_MODE[place.mode]
        if place.mode == "call" and self._in_frame(place):
            named = self.calls.python and not place.stack and place.expects == "key"
            return Segment.TOOL_NAME if named else Segment.CALL_FRAME
        begun = place.word or (place.stack and place.tail[-1:] in (" ", "\n", "=", "["))
        return Segment.NUMBER if place.expects == "value" and begun else Segment.JSON_KEY

    def _string(self, place: Place) -> Segment:
        if place.expects == "key":
            return Segment.CALL_FRAME if place.mode == "call" and self._in_frame(place) else Segment.JSON_KEY
        if place.mode == "call" and self._in_frame(place) and place.key == "name":
            return Segment.TOOL_NAME
        code = place.key in CODE_NAMES or place.key in self.code_names
        return Segment.CODE if code else Segment.STRING_VALUE

    def _in_frame(self, place: Place) -> bool:
        """Whether the place is outside the arguments of its call."""
        frames = 0 if self.calls.name_after or self.calls.python else 1
        return place.stack.count("{") + place.stack.count("(") <= frames and place.mode != "raw"


_BY_MODE: dict[Mode, Segment] = {
    "start": Segment.PROSE,
    "frame": Segment.CALL_FRAME,
    "prose": Segment.PROSE,
    "reasoning": Segment.REASONING,
    "fence": Segment.CODE,
    "code": Segment.CODE,
    "name": Segment.TOOL_NAME,
    "raw_name": Segment.JSON_KEY,
    "end": Segment.END,
}


def _runs_on(rules: Segmenter, place: Place, characters: str) -> bool:
    """Whether the characters are just more of the same, so that they need not be read one by one."""
    if place.string:
        return not place.escaped and place.string not in characters and "\\" not in characters
    turning = rules.turning.get(place.mode)
    return turning is not None and turning.isdisjoint(characters)
