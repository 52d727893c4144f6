"""Speculative decoding for local agents: the same tokens, several times faster.

The names below are loaded when they are first used, so that `import agentspec` stays quick. Errors are in
`agentspec.errors`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentspec.chat_models import ChatAgentSpec
    from agentspec.config import EngineConfig, SamplingParams
    from agentspec.local.engine import Engine

__version__ = "0.1.0"

__all__ = ["ChatAgentSpec", "Engine", "EngineConfig", "SamplingParams", "__version__"]

_HOMES = {
    "ChatAgentSpec": "agentspec.chat_models",
    "Engine": "agentspec.local.engine",
    "EngineConfig": "agentspec.config",
    "SamplingParams": "agentspec.config",
}


def __getattr__(name: str) -> object:
    if name == "errors":
        value: object = import_module("agentspec.errors")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'agentspec' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "errors"]
