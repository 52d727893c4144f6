"""What `/v1/responses` is sent, read into an ask."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from openai.types.responses import ResponseIncludable
from pydantic import Field, WithJsonSchema

from agentspec.local.ask import Options
from agentspec.server.desk import Asked
from agentspec.server.limits import check_messages
from agentspec.server.openai.fields import HeldFields, SamplingFields, read_format, read_tool_options, refuse
from agentspec.server.openai.responses_items import read_items
from agentspec.server.openai.responses_memory import Item
from agentspec.server.problems import bad_request
from agentspec.server.settings import ServerSettings

PATH = "/v1/responses"
_LOGPROBS = "message.output_text.logprobs"
_INSTEAD = {
    "messages": "input",
    "response_format": "text.format",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "logprobs": f'include: ["{_LOGPROBS}"]',
    "functions": "tools",
    "function_call": "tool_choice",
    "background": "stream",
    "conversation": "previous_response_id",
    "prompt": "instructions and input",
    "context_management": "a shorter input",
}


class ResponsesRequest(SamplingFields, HeldFields):
    """OpenAI's fields, the sampling parameters of chats, and `json_schema`, `regex`, `grammar` and `speculate`."""

    input: Annotated[
        Any,
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]}),
    ]
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Annotated[Any, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]})] = None
    parallel_tool_calls: bool | None = None
    text: dict[str, Any] | None = None
    include: list[str] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    metadata: dict[str, str] | None = None
    store: bool | None = None
    stream: bool | None = None
    truncation: Literal["auto", "disabled"] | None = None

    @property
    def names(self) -> dict[str, str]:
        """What the engine's fields are called here."""
        return {"messages": "input", **self.held_names("text.format" if (self.text or {}).get("format") else None)}

    @property
    def items(self) -> Sequence[object]:
        """The input as items.

        Raises:
            Problem: It is none.
        """
        if isinstance(self.input, str):
            return [{"type": "message", "role": "user", "content": self.input}]
        if not isinstance(self.input, list):
            raise bad_request(f"input must be a text or items, not a {type(self.input).__name__}", "input")
        return self.input

    def asked(self, earlier: Sequence[Item], given: Sequence[object], settings: ServerSettings) -> Asked:
        """The ask.

        Args:
            earlier: Items of the conversation before this request.
            given: `items`, each as it was answered where it was only referred to.
            settings: Limits.

        Raises:
            Problem: A field can't be honoured.
            ConfigError: A parameter is out of range.
        """
        self._check()
        check_messages([*earlier, *given], settings, "input")
        messages = read_items(earlier, given)
        if self.instructions:
            messages.insert(0, {"role": "system", "content": self.instructions})
        held = self.held_to(read_format((self.text or {}).get("format"), settings, "text.format"), settings)
        logprobs = (self.top_logprobs or 0) if _LOGPROBS in (self.include or ()) else None
        params = self.params(max_tokens=self.max_output_tokens, logprobs=logprobs)
        return Asked(PATH, messages, params, {**self.whose(), **held, **self._tools(settings)})

    def _check(self) -> None:
        refuse(self, _INSTEAD)
        if self.n not in (None, 1):
            raise bad_request(f"n is {self.n}, but a response is one answer: leave it out", "n")
        for name in self.include or ():
            if name not in get_args(ResponseIncludable):
                raise bad_request(f"include names {name!r}, which nothing is called", "include")
        if self.top_logprobs and _LOGPROBS not in (self.include or ()):
            raise bad_request(f'top_logprobs needs include: ["{_LOGPROBS}"]', "top_logprobs")
        for field in ("tools", "tool_choice", "text", "instructions", "metadata", "user"):
            _check_echo(getattr(self, field), field)

    def _tools(self, settings: ServerSettings) -> Options:
        for index, tool in enumerate(self.tools or ()):
            if (kind := tool.get("type")) != "function":
                message = f"tools[{index}]: tools of type {kind!r} can't be had, only functions"
                raise bad_request(message, f"tools[{index}]")
        tools = [{"type": "function", "function": tool} for tool in self.tools or ()]
        choice = self.tool_choice
        if isinstance(choice, Mapping) and choice.get("type") == "function" and "function" not in choice:
            choice = {"type": "function", "function": choice}
        return read_tool_options(tools, choice, parallel=self.parallel_tool_calls, settings=settings)


def _check_echo(value: object, field: str) -> None:
    """Refuse what an answer could not repeat, though it came as JSON of a kind."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        message = f"{field} holds what JSON can't: a number that is none, half of a character, or too deep a nest"
        raise bad_request(message, field) from error
