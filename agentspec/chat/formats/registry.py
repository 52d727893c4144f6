"""The formats that there are, and which one a model writes."""

from __future__ import annotations

from agentspec.chat.formats.base import ToolFormat
from agentspec.chat.formats.deepseek import DEEPSEEK, DEEPSEEK_V31
from agentspec.chat.formats.functionary import FUNCTIONARY
from agentspec.chat.formats.gemma import GEMMA
from agentspec.chat.formats.harmony import HARMONY
from agentspec.chat.formats.hermes import HERMES
from agentspec.chat.formats.llama3_json import LLAMA3_JSON
from agentspec.chat.formats.llama_pythonic import LLAMA_PYTHONIC
from agentspec.chat.formats.mistral import MISTRAL, MISTRAL_NAMED
from agentspec.chat.formats.phi4 import PHI4
from agentspec.chat.formats.plain import PLAIN
from agentspec.chat.formats.qwen3_coder import QWEN3_CODER
from agentspec.chat.template import Template
from agentspec.errors import ConfigError

FORMATS = {
    form.name: form
    for form in (
        HERMES,
        QWEN3_CODER,
        LLAMA3_JSON,
        MISTRAL,
        MISTRAL_NAMED,
        DEEPSEEK,
        DEEPSEEK_V31,
        PHI4,
        FUNCTIONARY,
        HARMONY,
        GEMMA,
        LLAMA_PYTHONIC,
        PLAIN,
    )
}
"""By name, in the order in which templates are asked; the last fits every model."""


def choose(template: Template, name: str | None = None) -> ToolFormat:
    """The format of this name; without one, the first in which the template shows calls, or of which it has the hints.

    Raises:
        ConfigError: No format has the name.
    """
    if name is not None:
        check_name(name)
        return FORMATS[name]
    hinted = (form for form in FORMATS.values() if form.hints and all(hint in template.source for hint in form.hints))
    return next((form for form in FORMATS.values() if template.knows(form)), None) or next(hinted, PLAIN)


def check_name(name: str) -> None:
    """See that a format has this name.

    Raises:
        ConfigError: None has.
    """
    if name not in FORMATS:
        raise ConfigError(f"no tool format is called {name!r}; there are: {', '.join(FORMATS)}")
