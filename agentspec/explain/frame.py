"""What our pages share: how they are rendered, and how sources are named and coloured in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files

from agentspec.explain.styles import Style, style_of

_PACKAGES = ("agentspec.explain", "agentspec.replay")
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
"""Control characters, those that turn the direction of what is behind them, and halves of characters."""


def render(template: str, **values: object) -> str:
    """A page that needs nothing else. Whatever is put into a template is escaped, and what a browser obeys is spelled.

    Args:
        template: Name of a file of ours; it extends `frame.html.jinja`, which wants `title` and `sources`.
        values: By name.
    """
    from jinja2 import Environment, FunctionLoader

    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_spelled, loader=FunctionLoader(_source)
    )
    return environment.get_template(template).render(values)


def class_names(sources: Iterable[str]) -> dict[str, str]:
    """A CSS class for each source: their own names are anybody's."""
    return {source: f"s{number}" for number, source in enumerate(sources)}


def styled(names: Mapping[str, str]) -> list[tuple[str, str, Style]]:
    """Each source with its class and how it looks, for `frame.html.jinja`."""
    return [(source, name, style_of(source)) for source, name in names.items()]


def _spelled(value: object) -> object:
    """A text with what would be obeyed spelled by its code, as the command line has it."""
    if type(value) is not str:  # what a macro has made is spelled already
        return value
    return _OBEYED.sub(lambda found: repr(found[0])[1:-1], value)


def _source(name: str) -> str | None:
    found = (files(package).joinpath(name) for package in _PACKAGES)
    return next((file.read_text(encoding="utf-8") for file in found if file.is_file()), None)
