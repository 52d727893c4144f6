"""How each source looks: a colour that most eyes tell apart, and a line under the text for those that don't."""

from __future__ import annotations

from dataclasses import dataclass

from agentspec.explain.account import TARGET


@dataclass(frozen=True, slots=True)
class Style:
    """Of one source.

    Attributes:
        light: Text colour on a light page, CSS.
        dark: Text colour on a dark page, CSS.
        line: Style of the line under the text, CSS.
        terminal: In the terminal, for rich.
        meaning: Where its guesses come from.
    """

    light: str
    dark: str
    line: str
    terminal: str
    meaning: str


STYLES = {
    "grammar": Style("#005a9c", "#7cc4ff", "solid", "bold blue", "forced or offered by the grammar"),
    "suffix": Style("#9a5b00", "#ffb94d", "dashed", "underline yellow", "repeats this conversation"),
    "ngram": Style("#9a5b00", "#ffb94d", "dashed", "underline yellow", "repeats this conversation"),
    "escaped": Style("#a1307a", "#ff9ed8", "dotted", "magenta", "repeats it in the other spelling, escaped or not"),
    "answers": Style("#00704d", "#4fd8a8", "double", "green", "repeats an earlier answer"),
    "shape": Style("#4d5a00", "#cfe04a", "wavy", "italic green", "a value's shape, as seen before"),
    "prediction": Style("#5b3fc4", "#bdaaff", "solid", "bold magenta", "the caller's prediction"),
    "model": Style("#b23a00", "#ff8f66", "wavy", "red", "the draft model"),
    TARGET: Style("inherit", "inherit", "none", "", "the model's own, one a forward"),
}
_OTHER = Style("#5a5a5a", "#c8c8c8", "dashed", "italic cyan", "another proposer")


def style_of(source: str) -> Style:
    """A source's style; every source that is not ours shares one."""
    return STYLES.get(source, _OTHER)
