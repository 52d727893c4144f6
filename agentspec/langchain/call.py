"""One call of a chat model: what it asks for, read and checked, and its answer within its time limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, cast

from agentspec.config import SamplingParams
from agentspec.errors import ConfigError, EngineError
from agentspec.langchain.structured import HELD_TO, read_response_format
from agentspec.langchain.tools import openai_tools, read_tool_choice

if TYPE_CHECKING:
    from agentspec.local.ask import Options
    from agentspec.local.engine import Engine
    from agentspec.local.result import Result, StreamEvent

SAMPLING = tuple(field.name for field in fields(SamplingParams))
"""Names of sampling parameters."""

_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")
_LAYOUT = ("json_whitespace",)
_DRAFTING = ("speculate", "caller", "prediction")
GIVEN = (*SAMPLING, "model", "draft_model", "timeout", *_DRAFTING, *_TOOLS, *HELD_TO, *_LAYOUT)
"""Names of what a call may be given."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request to an engine.

    Attributes:
        engine: Loaded.
        name: What its model is called in traces.
        messages: OpenAI's.
        params: How to sample.
        options: See `agentspec.local.ask.Options`.
        timeout: Seconds for the whole answer, None: as long as it takes.
    """

    engine: Engine
    name: str
    messages: list[dict[str, Any]]
    params: SamplingParams
    options: Options
    timeout: float | None

    async def answer(self) -> Result:
        """The whole answer; cancelling cancels the request.

        Raises:
            EngineError: The time is up, or the engine failed.
        """
        async with self._limit(self._deadline()):
            return await self.engine.agenerate(self.messages, self.params, **self.options)

    async def events(self) -> AsyncGenerator[StreamEvent]:
        """The answer piece by piece; closing cancels the request. Errors as for `answer`."""
        deadline = self._deadline()
        async with aclosing(self._stream()) as events:
            result = None
            while result is None:
                async with self._limit(deadline):
                    event = await anext(events)
                result = event.result
                yield event

    def _stream(self) -> AsyncGenerator[StreamEvent]:
        stream = self.engine.astream(self.messages, self.params, **self.options)
        return cast("AsyncGenerator[StreamEvent]", stream)

    def _deadline(self) -> float | None:
        return None if self.timeout is None else asyncio.get_running_loop().time() + self.timeout

    @asynccontextmanager
    async def _limit(self, deadline: float | None) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout_at(deadline):
                yield
        except TimeoutError as error:
            raise EngineError(
                f"no whole answer within timeout={self.timeout} seconds, so it was cancelled: "
                "raise timeout or lower max_tokens"
            ) from error


def read_names(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a call was given by name, without LangChain's own switch `stream`.

    Raises:
        ConfigError: A name is unknown.
    """
    for name in given:
        if name not in (*GIVEN, "stream"):
            raise ConfigError(f"a call takes no {name!r}; it takes: {', '.join(GIVEN)}")
    return {name: value for name, value in given.items() if name != "stream"}


def read_sampling(values: Mapping[str, Any]) -> SamplingParams:
    """Sampling parameters, with LangChain's ways of saying them: no stop string is None, `logprobs` may be a bool.

    Raises:
        ConfigError: A value is out of range.
    """
    read = {**values, "stop": values["stop"] or ()}
    if isinstance(read["logprobs"], bool):
        read["logprobs"] = 0 if read["logprobs"] else None
    return SamplingParams.of(read)


def read_options(given: Mapping[str, Any], *, speculate: bool, caller: str) -> Options:
    """The engine's options.

    Args:
        given: What the call was given by name.
        speculate: The model's own setting.
        caller: The model's own.

    Raises:
        ConfigError: They contradict each other.
    """
    options = {name: given[name] for name in (*HELD_TO, *_TOOLS, *_LAYOUT) if given.get(name) is not None}
    tools = options["tools"] = openai_tools(options.get("tools", ()))
    options["tool_choice"] = read_tool_choice(options.get("tool_choice"), tools)
    if "response_format" in options:
        if "json_schema" in options:
            raise ConfigError("the answer can be held to json_schema or response_format, not both: leave one out")
        options["json_schema"] = read_response_format(options.pop("response_format"))
    options["speculate"], options["caller"] = given.get("speculate", speculate), given.get("caller", caller)
    if given.get("prediction") is not None:
        options["prediction"] = read_prediction(given["prediction"])
    return cast("Options", options)


def read_prediction(given: object) -> str:
    """The text that the answer may resemble: as it is, or in OpenAI's object.

    Raises:
        ConfigError: It is neither.
    """
    content = given.get("content") if isinstance(given, Mapping) else given
    parts = content if isinstance(content, list | tuple) else [content]
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    found = [text for text in texts if isinstance(text, str)]
    if not found or len(found) < len(texts):
        raise ConfigError(f'prediction must be a text, or {{"type": "content", "content": TEXT}}, not {given!r}')
    return "".join(found)


def read_timeout(timeout: object) -> float | None:
    """A time limit in seconds; None: none.

    Raises:
        ConfigError: It is no number above 0.
    """
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise ConfigError(f"timeout must be a number of seconds above 0, not {timeout!r}")
    return float(timeout)
