"""What `/v1/chat/completions` is sent, read into an ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from agentspec.local.ask import Options
from agentspec.server.desk import Asked
from agentspec.server.limits import check_messages
from agentspec.server.openai.fields import (
    HeldFields,
    SamplingFields,
    StreamOptions,
    read_format,
    read_tool_options,
    refuse,
)
from agentspec.server.problems import bad_request
from agentspec.server.settings import ServerSettings

PATH = "/v1/chat/completions"

_INSTEAD = {
    "functions": "tools",
    "function_call": "tool_choice",
    "audio": "text only",
    "web_search_options": "a tool of your own",
}


class ChatRequest(SamplingFields, HeldFields):
    """OpenAI's fields, and `json_schema`, `regex`, `grammar` (Lark) and `speculate` besides."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    response_format: dict[str, Any] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    prediction: dict[str, Any] | None = None
    modalities: list[str] | None = None

    def asked(self, settings: ServerSettings) -> Asked:
        """The ask.

        Raises:
            Problem: A field can't be honoured.
            ConfigError: A parameter is out of range.
        """
        self._check()
        check_messages(self.messages, settings)
        options: Options = {
            **self.whose(),
            **self.held_to(read_format(self.response_format, settings), settings),
            **read_tool_options(self.tools, self.tool_choice, parallel=self.parallel_tool_calls, settings=settings),
        }
        if self.prediction is not None:
            options["prediction"] = read_prediction(self.prediction)
        limit = self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens
        logprobs = (self.top_logprobs or 0) if self.logprobs else None
        return Asked(PATH, self.messages, self.params(max_tokens=limit, logprobs=logprobs), options)

    @property
    def names(self) -> dict[str, str]:
        """What the engine's fields are called here."""
        return self.held_names("response_format" if self.response_format is not None else None)

    def _check(self) -> None:
        refuse(self, _INSTEAD)
        if self.modalities not in (None, [], ["text"]):
            raise bad_request(f"modalities {self.modalities} can't be had: only text", "modalities")
        if self.top_logprobs and not self.logprobs:
            raise bad_request("top_logprobs needs logprobs: true", "top_logprobs")
        if self.stream_options is not None and not self.stream:
            raise bad_request("stream_options needs stream: true", "stream_options")


def read_prediction(given: Mapping[str, Any]) -> str:
    """The text that the answer is expected to resemble.

    Raises:
        Problem: It is none.
    """
    content = given.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if given.get("type", "content") == "content" and isinstance(parts, list):
        texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
        if len(texts) == len(parts) and all(isinstance(text, str) for text in texts):
            return "".join(text for text in texts if text is not None)
    raise bad_request('prediction must be {"type": "content", "content": TEXT}', "prediction")
