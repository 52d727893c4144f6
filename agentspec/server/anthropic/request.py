"""What `/v1/messages` is sent, read into an ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from agentspec.config import SamplingParams
from agentspec.grammar.tools import ToolChoice
from agentspec.local.ask import Options
from agentspec.server.anthropic.turns import Turn, read_turns
from agentspec.server.anthropic.wire import PATH
from agentspec.server.desk import Asked
from agentspec.server.limits import check_messages
from agentspec.server.openai.fields import read_format, read_tool_options, refuse
from agentspec.server.problems import bad_request
from agentspec.server.settings import ServerSettings

_SAMPLING = ("temperature", "top_p", "top_k", "seed")
_INSTEAD = {
    "stop": "stop_sequences",
    "max_completion_tokens": "max_tokens",
    "response_format": "output_config",
    "json_schema": "output_config",
    "regex": "/v1/chat/completions",
    "grammar": "/v1/chat/completions",
    "logit_bias": "/v1/chat/completions",
    "prediction": "/v1/chat/completions",
    "n": "several requests",
}
"""Fields of OpenAI's API and of ours that would change an answer, and what says the same here."""
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


class Conversation(BaseModel):
    """What is to be answered, and with which tools.

    Fields that change nothing about an answer here, such as `thinking`, `cache_control` and `service_tier`, are taken
    and left alone.
    """

    model_config = ConfigDict(extra="allow")

    model: str
    messages: list[dict[str, Any]]
    system: str | list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: dict[str, Any] | None = None

    def turns(self, settings: ServerSettings) -> list[Turn]:
        """The conversation in OpenAI's shape.

        Raises:
            Problem: A message can't be used.
        """
        check_messages(self.messages, settings)
        return read_turns(self.system, self.messages)

    def tool_options(self, settings: ServerSettings) -> Options:
        """The tools in OpenAI's shape, and which may be called; nothing where there are none.

        Raises:
            Problem: One can't be used.
        """
        for name in ("mcp_servers", "container"):
            if (self.model_extra or {}).get(name):
                raise bad_request(f"{name} is not supported: only tools that the client runs are", name)
        tools = [_tool(tool, f"tools[{index}]") for index, tool in enumerate(self.tools or ())]
        choice, parallel = _choice(self.tool_choice)
        return read_tool_options(tools, choice, parallel=parallel, settings=settings)


class MessagesRequest(Conversation):
    """Anthropic's fields, and `seed` and `speculate` besides.

    Without a temperature the likeliest token is picked.
    """

    max_tokens: int
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    metadata: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None
    output_format: dict[str, Any] | None = None
    speculate: bool | None = None

    def asked(self, settings: ServerSettings) -> Asked:
        """The ask.

        Raises:
            Problem: A field can't be honoured.
            ConfigError: A parameter is out of range.
        """
        refuse(self, _INSTEAD)
        options: Options = {**self._whose(), **self._held_to(settings), **self.tool_options(settings)}
        given = {name: value for name in _SAMPLING if (value := getattr(self, name)) is not None}
        params = SamplingParams(**given, max_tokens=self.max_tokens, stop=self.stop_sequences or ())
        return Asked(PATH, self.turns(settings), params, options)

    @property
    def names(self) -> dict[str, str]:
        """What the engine's fields are called here."""
        return {"stop": "stop_sequences", "response_format": "output_config" if self.output_config else "output_format"}

    def _whose(self) -> Options:
        user = (self.metadata or {}).get("user_id")
        if not isinstance(user, str | None):
            raise bad_request(f"metadata.user_id must be a text, not {user!r}", "metadata")
        options: Options = {"caller": user or ""}
        if self.speculate is not None:
            options["speculate"] = self.speculate
        return options

    def _held_to(self, settings: ServerSettings) -> Options:
        given = (self.output_config or {}).get("format")
        if given is not None:
            return read_format(given, settings, "output_config.format")
        return read_format(self.output_format, settings, "output_format")


def _tool(tool: Mapping[str, Any], place: str) -> dict[str, Any]:
    name, kind = tool.get("name"), tool.get("type")
    if kind not in (None, "custom"):
        words = f"{place}: {name!r} is a tool of Anthropic's own, of type {kind!r}: give one with an input_schema"
        raise bad_request(words, place)
    if not isinstance(tool.get("input_schema"), Mapping):
        raise bad_request(f"{place}: {name!r} needs an input_schema, an object", place)
    function = {"name": name, "description": tool.get("description"), "parameters": tool["input_schema"]}
    return {"type": "function", "function": function}


def _choice(given: Mapping[str, Any] | None) -> tuple[ToolChoice | None, bool | None]:
    """Which tools are to be called, as OpenAI says it, and whether several at once may be."""
    if given is None:
        return None, None
    parallel = False if given.get("disable_parallel_tool_use") else None
    kind = given.get("type")
    if kind == "tool":
        return {"type": "function", "function": {"name": given.get("name")}}, parallel
    if not isinstance(kind, str) or kind not in _CHOICES:
        raise bad_request(f"tool_choice must have the type auto, any, tool or none, not {kind!r}", "tool_choice")
    return _CHOICES[kind], parallel
