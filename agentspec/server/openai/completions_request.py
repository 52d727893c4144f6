"""What `/v1/completions` is sent, read into asks."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from agentspec.local.ask import Options
from agentspec.server.desk import Asked
from agentspec.server.openai.fields import HeldFields, SamplingFields, StreamOptions, refuse
from agentspec.server.problems import bad_request
from agentspec.server.settings import ServerSettings

PATH = "/v1/completions"
_MAX_TOKENS = 16
_INSTEAD = {
    "messages": "/v1/chat/completions",
    "tools": "/v1/chat/completions",
    "tool_choice": "/v1/chat/completions",
    "prediction": "/v1/chat/completions",
    "response_format": "json_schema, regex or grammar",
    "max_completion_tokens": "max_tokens",
}
_TOKENS = {"type": "array", "items": {"type": "integer"}}
_PROMPT = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, _TOKENS]}
_PROMPTS = {"anyOf": [*_PROMPT["anyOf"], {"type": "array", "items": _TOKENS}]}


class CompletionsRequest(SamplingFields, HeldFields):
    """OpenAI's fields, and `json_schema`, `regex`, `grammar` (Lark) and `speculate` besides."""

    prompt: Annotated[Any, WithJsonSchema(_PROMPTS)]
    max_tokens: int | None = None
    suffix: str | None = None
    echo: bool | None = None
    logprobs: Annotated[int, Field(ge=0, le=5)] | None = None
    best_of: int | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @property
    def names(self) -> dict[str, str]:
        """What the engine's fields are called here."""
        return {"messages": "prompt", **self.held_names(None)}

    @property
    def prompts(self) -> list[str | list[int]]:
        """Each as text or token ids.

        Raises:
            Problem: There is none, or one is neither.
        """
        given = [self.prompt] if isinstance(self.prompt, str) or _is_tokens(self.prompt) else self.prompt
        if isinstance(given, list) and given and all(isinstance(each, str) or _is_tokens(each) for each in given):
            return given
        raise bad_request("prompt must be a text, token ids, or a list of either; none may be empty", "prompt")

    def asked(self, settings: ServerSettings) -> list[Asked]:
        """An ask for each prompt.

        Raises:
            Problem: A field can't be honoured.
            ConfigError: A parameter is out of range.
        """
        self._check()
        options: Options = {**self.whose(), **self.held_to({}, settings)}
        limit = _MAX_TOKENS if self.max_tokens is None else self.max_tokens
        params = self.params(max_tokens=limit, logprobs=self.logprobs)
        answers = len(self.prompts) * params.n
        if answers > settings.max_answers:
            message = f"these prompts have {answers} answers, at most {settings.max_answers} may be in one request"
            raise bad_request(message, "prompt" if params.n == 1 else "n")
        return [Asked(PATH, prompt, params, options) for prompt in self.prompts]

    def _check(self) -> None:
        refuse(self, _INSTEAD)
        if self.suffix:
            raise bad_request("suffix is not supported: put the model's own marks for it into the prompt", "suffix")
        if self.best_of not in (None, self.n or 1):
            raise bad_request(f"best_of must be as large as n, {self.n or 1}, not {self.best_of}", "best_of")
        if self.echo and self.logprobs is not None:
            raise bad_request("a prompt's log-probabilities can't be had: leave out echo or logprobs", "echo")
        if self.stream_options is not None and not self.stream:
            raise bad_request("stream_options needs stream: true", "stream_options")


def _is_tokens(given: object) -> bool:
    return (
        isinstance(given, list)
        and bool(given)
        and all(isinstance(each, int) and not isinstance(each, bool) for each in given)
    )
