"""LangChain's chat model on an engine in this process."""

# ruff: noqa: ANN401 (LangChain passes keyword arguments of any kind)

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable

from agentspec.errors import ConfigError
from agentspec.grammar.enforceable import check_tools
from agentspec.langchain.answers import Answer
from agentspec.langchain.bound import BoundChat
from agentspec.langchain.call import Call, read_names, read_options, read_timeout
from agentspec.langchain.messages import openai_messages
from agentspec.langchain.settings import ChatSettings
from agentspec.langchain.shared import EngineRegistry, iterate, wait_for
from agentspec.langchain.structured import Method, OutputSchema, structured_output
from agentspec.langchain.tools import ToolLike, openai_tools, read_tool_choice

if TYPE_CHECKING:
    from agentspec.local.engine import Engine

_ENGINES = EngineRegistry()


class ChatAgentSpec(ChatSettings):
    """A model in this process as a LangChain chat model: the same tokens as plain decoding, written faster.

    Making one loads nothing. The first call loads the engine, and models with the same settings share it, as `batch`
    and threads do: calls that overlap share forwards. What a call is given overrides the field of that name, and a
    name that is unknown is refused, here and in calls. Calls also take `response_format`, as OpenAI has it, `regex` and
    `lark`, to which the answer is held, `json_whitespace`, and `prediction`: a text that the answer may resemble, such
    as the file that is to be changed, which makes it faster and changes nothing.

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
            one can't be pickled, nor made anew by LangChain's `load`.
        temperature, max_tokens, stop, seed, top_p, top_k, min_p: See `SamplingParams`, and so for the rest there.
        logprobs: With each token its log-probability; a number: also those of so many likeliest tokens, 0 to 20. They
            are in `response_metadata["logprobs"]["content"]`, each with the token's text, bytes and id.
        caller: Whose requests these are, where one engine serves several: drafts for one caller never show, by how fast
            they come true, what others were answered.
        timeout: Seconds for one answer, from when the engine is loaded; then it is cancelled with an `EngineError`.
        streaming: Whether `invoke` streams too, for callbacks that want each token.
        max_retries, api_key: Taken from code that sets them for every provider. There is no network here: nothing to
            retry, and nobody to show a key to.
    """

    def close(self) -> None:
        """Free the engine that models with these settings share; the next call of one of them loads it anew."""
        if self.engine is None:
            _ENGINES.close(self._loading({}))

    def get_token_ids(self, text: str) -> list[int]:
        """A text's tokens as a prompt of this model, or by `custom_get_token_ids` where that is set; loads it."""
        if self.custom_get_token_ids is not None:
            return self.custom_get_token_ids(text)
        return self._engine({}).tokens(text)

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Sequence[ToolLike] | None = None) -> int:
        """How many tokens the prompt of these messages and tools has, template and all; loads the model."""
        return self._engine({}).count_tokens(openai_messages(messages), openai_tools(tools or ()))

    def bind(self, **kwargs: Any) -> BoundChat:  # type: ignore[override]
        """This model with arguments of its calls set."""
        return BoundChat(bound=self, kwargs=kwargs, config={})

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

        With `tools`, or on a model that tools are bound to, an answer that calls some has no value: it is an error, or
        with `include_raw` one whose `parsed` and `parsing_error` are None.

        Args:
            schema: A pydantic or TypedDict class, a JSON Schema, or an OpenAI function; None with "json_mode" only.
            method: "json_schema" holds the answer to the schema, "function_calling" holds a call of one tool to it,
                "json_mode" holds the answer to be any JSON object.
            include_raw: Give `{"raw", "parsed", "parsing_error"}` and don't raise where the answer can't be read.
            strict: Whether objects take no keys beyond the declared ones; None: those of classes don't.
            **kwargs: For each call.

        Raises:
            ConfigError: The method is unknown, needs a schema, or leaves no choice between it and the tools.
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
        return self._answer(call).whole(wait_for(call.answer()))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = await asyncio.to_thread(self._read, messages, stop, kwargs)
        return self._answer(call).whole(await call.answer())

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        call = self._read(messages, stop, kwargs)
        answer = self._answer(call)
        for event in iterate(call.events()):
            for chunk in answer.more(event):
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
        answer = self._answer(call)
        async with aclosing(call.events()) as events:
            async for event in events:
                for chunk in answer.more(event):
                    if run_manager:
                        await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                    yield chunk

    def _read(self, messages: list[BaseMessage], stop: list[str] | None, given: Mapping[str, Any]) -> Call:
        """One call, checked before the engine is loaded for it."""
        given = read_names(given if stop is None else {**given, "stop": stop})
        params, options = self._params(given), read_options(given, speculate=self.speculate, caller=self.caller)
        prompt, timeout = openai_messages(messages), read_timeout(given.get("timeout", self.timeout))
        return Call(self._engine(given), given.get("model") or self._model_name, prompt, params, options, timeout)

    def _engine(self, given: Mapping[str, Any]) -> Engine:
        if self.engine is None:
            return _ENGINES.get(self._loading(given))
        for name in ("model", "draft_model"):
            if given.get(name) is not None:
                raise ConfigError(
                    f"{name}={given[name]!r} can't be used: this chat model was made with a loaded engine"
                )
        return self.engine  # type: ignore[no-any-return]

    def _answer(self, call: Call) -> Answer:
        return Answer(call.name, call.engine.spell, self.output_version)
