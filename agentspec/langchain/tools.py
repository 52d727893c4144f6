"""LangChain's tools and choices of tools to the engine's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from agentspec.errors import ConfigError

if TYPE_CHECKING:
    from agentspec.grammar.tools import ToolChoice

ToolLike = Mapping[str, Any] | type | Callable[..., Any] | BaseTool
"""What LangChain takes as a tool: a function, a tool, a pydantic or TypedDict class, or a dict."""


def openai_tools(tools: Sequence[ToolLike], *, strict: bool | None = None) -> list[dict[str, Any]]:
    """The tools in OpenAI's form."""
    return [convert_to_openai_tool(cast("Any", tool), strict=strict) for tool in tools]


def read_tool_choice(choice: object, tools: Sequence[Mapping[str, Any]]) -> ToolChoice:
    """The engine's tool choice for LangChain's.

    Args:
        choice: "auto", "any", "required", "none", a tool's name, True (as "any"), False or None (as "auto"), or
            OpenAI's object that names a tool.
        tools: In OpenAI's form.

    Raises:
        ConfigError: It is none of that.
    """
    if choice is None or isinstance(choice, bool):
        return "required" if choice else "auto"
    if choice == "any":
        return "required"
    names = [tool.get("function", {}).get("name") for tool in tools]
    if isinstance(choice, str) and choice in ("auto", "required", "none", *names):
        return choice
    if isinstance(choice, Mapping) and choice.get("function", {}).get("name") in names:
        return choice
    raise ConfigError(
        f"tool_choice must be auto, any, required, none or one of the tools ({', '.join(map(str, names))}), "
        f"not {choice!r}"
    )
