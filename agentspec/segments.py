"""Where in the output a token stands: what is predictable differs from segment to segment."""

from __future__ import annotations

from enum import StrEnum


class Segment(StrEnum):
    """The kind of text that is being written."""

    PROSE = "prose"
    """Free text: an answer, a thought, code outside any structure."""

    TOOL_CALL = "tool_call"
    """A tool call, from its opening marker to its closing one."""

    STRUCTURED = "structured"
    """A document held to a schema, a regex or a grammar."""
