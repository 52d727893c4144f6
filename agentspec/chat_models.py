"""LangChain's chat model on an engine in this process."""

# ruff: noqa: ANN401 (LangChain passes keyword arguments of any kind)

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from pydantic import ConfigDict, Field, PrivateAttr, SecretStr, model_validator

from agentspec import __version__
from agentspec.config import SamplingParams
from agentspec.errors import ConfigError
from agentspec.grammar.enforceable import check_tools
from agentspec.langchain.call import SAMPLING, Call, read_names, read_options, read_sampling, read_timeout
from agentspec.langchain.messages import PROVIDER, chunks, generation, openai_messages
from agentspec.langchain.shared import EngineRegistry, iterate, wait_for
from agentspec.langchain.structured import Method, OutputSchema, structured_output
from agentspec.langchain.tools import ToolLike, openai_tools, read_tool_choice
from agentspec.models.embedded import DEFAULT

if TYPE_CHECKING:
    from agentspec.local.engine import Engine
    from agentspec.local.result import Result

_ENGINES = EngineRegistry()
_PLACEMENT = ("device", "dtype", "device_map", "trust_remote_code", "allow_pickle", "tool_format")
_LOADING = ("model", "draft_model", "proposers", *_PLACEMENT)


class ChatAgentSpec(BaseChatModel):
    """A model in this process as a LangChain chat model: the same tokens as plain decoding, written faster.

    Making one loads nothing. The first call loads the engine, and models with the same settings share it, as `batch`
    and threads do: calls that overlap share forwards. What a call is given overrides the field of that name, and a
    name that is unknown is refused, here and in calls. Calls also take `regex` and `lark`, to which the answer is
    held, and `response_format`, as OpenAI has it.

    A call that was cut off by `max_tokens` is in `invalid_tool_calls`, and `response_metadata["finish_reason"]` is
    "length". A model's thoughts are in `additional_kwargs["reasoning_content"]`. `response_metadata["agentspec"]` tells
    forwards, tokens and what each source drafted.

    Attributes:
        model: A folder, a hub id, a `.gguf` file or a known name. None: the embedded default, fetched once.
        draft_model: A smaller model with the same tokenizer, likewise.
        speculate: Off: plain decoding.
        proposers: "grammar", "shape", "suffix", "model", those to draft with, in the order of trust. None: all.
        device, dtype, device_map, trust_remote_code, allow_pickle, tool_format: See `Engine.load`.
        engine: A loaded engine, instead of all the above but `speculate`; its owner closes it. A chat model that has
            one can't be pickled.
        temperature, max_tokens, stop, seed, top_p, top_k, min_p: See `SamplingParams`, and so for the rest there.
        logprobs: With each token its log-probability; a number: also those of so many likeliest tokens, 0 to 20. They
            are in `response_metadata["logprobs"]["content"]`, by token id.
        timeout: Seconds for one answer, from when the engine is loaded; then it is cancelled with an `EngineError`.
        streaming: Whether `invoke` streams too, for callbacks that want each token.
        max_retries, api_key: Taken from code that sets them for every provider. There is no network here: nothing to
            retry, and nobody to show a key to.
    """

    model_config = ConfigDict(extra="forbid")

    model: str | None = None
    draft_model: str | None = None
    speculate: bool = True
    proposers: list[str] | None = None
    device: str | None = None
    dtype: str | None = None
    device_map: str | dict[str, Any] | None = None
    trust_remote_code: bool = False
    allow_pickle: bool = False
    tool_format: str | None = None
    engine: Any = Field(default=None, exclude=True, repr=False)

    temperature: float = 0.0
    max_tokens: int | None = None
    min_tokens: int = 0
    stop: str | list[str] | None = None
    stop_token_ids: list[int] = Field(default_factory=list)
    bad_words: list[str | tuple[int, ...]] = Field(default_factory=list)
    seed: int | None = None
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: dict[int, float] = Field(default_factory=dict)
    n: int = 1
    logprobs: bool | int | None = None

    timeout: float | None = Field(default=None, gt=0)
    streaming: bool = False
    max_retries: int | None = Field(default=None, ge=0)
    api_key: SecretStr | None = Field(default=None, exclude=True, repr=False)

    _key: str = PrivateAttr(default_factory=lambda: uuid4().hex)

    @model_validator(mode="after")
    def _check_agentspec_settings(self) -> Self:
        self._params({})
        if self.engine is not None and (given := [name for name in _LOADING if getattr(self, name)]):
            raise ConfigError(f"engine is a loaded model already: leave out {', '.join(given)}")
        self._add_version(PROVIDER, __version__)
        return self

    @property
    def _llm_type(self) -> str:
        return PROVIDER

    @property
    def _model_name(self) -> str:
        return self.model or (DEFAULT if self.engine is None else "loaded engine")

    @property
    def _identifying_params(self) -> dict[str, Any]:
        settings = {name: getattr(self, name) for name in (*_LOADING, "speculate", *SAMPLING, "timeout")}
        # The key, since a cache of answers can't tell one loaded engine from another by the settings.
        return {"model_name": self._model_name, **settings} | ({"engine": self._key} if self.engine is not None else {})

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        own = [self.stop] if isinstance(self.stop, str) else self.stop
        params = super()._get_ls_params(stop=stop or own, **kwargs)
        return LangSmithParams(
            **{**params, "ls_provider": PROVIDER, "ls_model_name": kwargs.get("model") or self._model_name}
        )

    def __getstate__(self) -> dict[Any, Any]:
        if self.engine is not None:
            raise ConfigError("a chat model with a loaded engine can't be pickled: make it with model=... instead")
        return super().__getstate__()

    def close(self) -> None:
        """Free the engine that models with these settings share; the next call of one of them loads it anew."""
        if self.engine is None:
            _ENGINES.close(self._loading({}))

    def get_token_ids(self, text: str) -> list[int]:
        """The ids by `custom_get_token_ids`, where that is set."""
        if self.custom_get_token_ids is None:
            raise NotImplementedError("token ids of a text: use get_num_tokens, or set custom_get_token_ids")
        return self.custom_get_token_ids(text)

    def get_num_tokens(self, text: str) -> int:
        """How many tokens a text has for this model; loads it."""
        return int(self._engine({}).count_tokens(text))

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Sequence[ToolLike] | None = None) -> int:
        """How many tokens the prompt of these messages and tools has, template and all; loads the model."""
        return int(self._engine({}).count_tokens(openai_messages(messages), openai_tools(tools or ())))

    def bind_tools(
        self,
        tools: Sequence[ToolLike],
        *,
        tool_choice: str | bool | Mapping[str, Any] | None = None,
        strict: bool | None = None,
        parallel_tool_calls: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """This model with tools that it may call; calls are always held to the tools' schemas.

        Args:
            tools: Functions, tools, pydantic or TypedDict classes, or dicts.
            tool_choice: "auto" (the default), "any" or "required", "none", a tool's name, True for "any", or OpenAI's
                object that names one.
            strict: Whether objects within the arguments take no keys beyond the declared ones either.
            parallel_tool_calls: Whether one answer may call more than once; default True.
            **kwargs: For each call.

        Raises:
            ConfigError: A tool is malformed, or `tool_choice` asks for one that isn't there.
            GrammarError: A tool's parameters can't be enforced.
        """
        listed = openai_tools(tools, strict=strict)
        choice = read_tool_choice(tool_choice, listed)
        check_tools(listed, choice)
        parallel = True if parallel_tool_calls is None else parallel_tool_calls
        return self.bind(tools=listed, tool_choice=choice, parallel_tool_calls=parallel, **kwargs)

    def with_structured_output(
        self,
        schema: OutputSchema | None = None,
        *,
        method: Method = "json_schema",
        include_raw: bool = False,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Any]:
        """This model with answers read as values; one that was cut off by the length limit is an error.

        Args:
            schema: A pydantic or TypedDict class, a JSON Schema, or an OpenAI function; None with "json_mode" only.
            method: "json_schema" holds the answer to the schema, "function_calling" holds a call of one tool to it,
                "json_mode" holds the answer to be any JSON object.
            include_raw: Give `{"raw", "parsed", "parsing_error"}` and don't raise where the answer can't be read.
            strict: Whether objects take no keys beyond the declared ones; None: those of classes don't.
            **kwargs: For each call.

        Raises:
            ConfigError: The method is unknown, or needs a schema.
            GrammarError: The schema can't be enforced.
        """
        return structured_output(self, schema, method=method, include_raw=include_raw, strict=strict, options=kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = self._read(messages, stop, kwargs)
        return _result(call, wait_for(call.answer()))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = await asyncio.to_thread(self._read, messages, stop, kwargs)
        return _result(call, await call.answer())

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        call = self._read(messages, stop, kwargs)
        written: dict[int, str] = {}
        for event in iterate(call.events()):
            for chunk in chunks(event, call.name, written):
                if run_manager:
                    run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        call = await asyncio.to_thread(self._read, messages, stop, kwargs)
        written: dict[int, str] = {}
        async with aclosing(call.events()) as events:
            async for event in events:
                for chunk in chunks(event, call.name, written):
                    if run_manager:
                        await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                    yield chunk

    def _read(self, messages: list[BaseMessage], stop: list[str] | None, given: Mapping[str, Any]) -> Call:
        """One call, checked before the engine is loaded for it."""
        given = read_names(given if stop is None else {**given, "stop": stop})
        params, options = self._params(given), read_options(given, speculate=self.speculate)
        prompt, timeout = openai_messages(messages), read_timeout(given.get("timeout", self.timeout))
        return Call(self._engine(given), given.get("model") or self._model_name, prompt, params, options, timeout)

    def _params(self, given: Mapping[str, Any]) -> SamplingParams:
        return read_sampling({name: given.get(name, getattr(self, name)) for name in SAMPLING})

    def _engine(self, given: Mapping[str, Any]) -> Engine:
        if self.engine is None:
            return _ENGINES.get(self._loading(given))
        for name in ("model", "draft_model"):
            if given.get(name) is not None:
                raise ConfigError(
                    f"{name}={given[name]!r} can't be used: this chat model was made with a loaded engine"
                )
        return self.engine  # type: ignore[no-any-return]

    def _loading(self, given: Mapping[str, Any]) -> dict[str, Any]:
        settings = {name: given.get(name, getattr(self, name)) for name in _LOADING}
        settings["draft"] = settings.pop("draft_model")
        return settings


def _result(call: Call, result: Result) -> ChatResult:
    return ChatResult(generations=[generation(each, call.name) for each in (result, *result.alternatives)])
