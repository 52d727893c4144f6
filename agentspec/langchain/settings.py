"""What a chat model is set to, and what others see of that: caches of answers, traces, pickles and dumps."""

# ruff: noqa: ANN401 (LangChain passes keyword arguments of any kind)

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from operator import eq
from typing import Any, Self
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams
from langchain_core.language_models.model_profile import ModelProfile
from langchain_core.load.serializable import SerializedConstructor, SerializedNotImplemented
from pydantic import ConfigDict, Field, PrivateAttr, SecretStr, model_validator

from agentspec import __version__
from agentspec.config import SamplingParams
from agentspec.errors import ConfigError
from agentspec.langchain.answers import PROVIDER
from agentspec.langchain.call import SAMPLING, read_sampling
from agentspec.langchain.structured import response_format
from agentspec.langchain.tools import openai_tools
from agentspec.models.embedded import DEFAULT

_PLACEMENT = ("device", "dtype", "device_map", "trust_remote_code", "allow_pickle", "tool_format")
_LOADING = ("model", "draft_model", "proposers", *_PLACEMENT)


class ChatSettings(BaseChatModel):
    """The fields of `ChatAgentSpec`, which says what each is for."""

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

    caller: str = ""
    timeout: float | None = Field(default=None, gt=0)
    streaming: bool = False
    max_retries: int | None = Field(default=None, ge=0)
    api_key: SecretStr | None = Field(default=None, exclude=True, repr=False)

    _key: str = PrivateAttr(default_factory=lambda: uuid4().hex)

    def __init__(self, **settings: Any) -> None:
        """With these fields.

        Raises:
            ConfigError: A name is unknown.
            ValidationError: A value can't be used.
        """
        for name in settings:
            if name not in type(self).model_fields:
                raise ConfigError(f"{type(self).__name__} has no field {name!r}; {_instead(name)}")
        super().__init__(**settings)

    @model_validator(mode="after")
    def _check_agentspec_settings(self) -> Self:
        self._params({})
        if self.streaming and self.n > 1:
            raise ConfigError(f"streaming gives one answer, not n={self.n}: leave out one of the two")
        if self.engine is not None and (given := [name for name in _LOADING if getattr(self, name)]):
            raise ConfigError(f"engine is a loaded model already: leave out {', '.join(given)}")
        self._add_version(PROVIDER, __version__)
        return self

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Yes: by its settings, without weights."""
        return True

    def to_json(self) -> SerializedConstructor | SerializedNotImplemented:
        """The settings, for LangChain's `dumps` and `load`; one with a loaded engine can't be made anew from them."""
        return super().to_json() if self.engine is None else self.to_json_not_implemented()

    def __getstate__(self) -> dict[Any, Any]:
        if self.engine is not None:
            raise ConfigError("a chat model with a loaded engine can't be pickled: make it with model=... instead")
        return super().__getstate__()

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

    def _get_llm_string(self, stop: list[str] | None = None, **kwargs: Any) -> str:
        """The key under which answers are cached. LangChain's own takes no notice of the model's own stop strings."""
        given = {**kwargs, **({} if stop is None else {"stop": stop})}
        if isinstance(held_to := given.get("response_format"), type):
            given["response_format"] = response_format(held_to)  # classes of one name may have different fields
        if given.get("tools"):
            given["tools"] = openai_tools(given["tools"])
        return str(sorted({**self.asdict(), **given}.items()))

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        own = [self.stop] if isinstance(self.stop, str) else self.stop
        params = super()._get_ls_params(stop=stop or own, **kwargs)
        return LangSmithParams(
            **{**params, "ls_provider": PROVIDER, "ls_model_name": kwargs.get("model") or self._model_name}
        )

    def _resolve_model_profile(self) -> ModelProfile:
        """What agents ask before they choose how to get a structured answer."""
        return ModelProfile(
            tool_calling=True,
            tool_choice=True,
            structured_output=True,
            image_inputs=False,
            audio_inputs=False,
            video_inputs=False,
            pdf_inputs=False,
        )

    def _params(self, given: Mapping[str, Any]) -> SamplingParams:
        return read_sampling({name: given.get(name, getattr(self, name)) for name in SAMPLING})

    def _loading(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of `Engine.load`."""
        settings = {name: given.get(name, getattr(self, name)) for name in _LOADING}
        settings["draft"] = settings.pop("draft_model")
        return settings


def _instead(name: str) -> str:
    """The field that was probably meant; else all of ours."""
    near = get_close_matches(name, ChatSettings.model_fields)
    if near:
        alike = {each: [*map(eq, each, name), False].index(False) for each in near}
        return f"did you mean {max(near, key=alike.__getitem__)}?"
    return f"there are: {', '.join(each for each in ChatSettings.__annotations__ if not each.startswith('_'))}"
