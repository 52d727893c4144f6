"""A chat model with arguments bound to it, none of which are lost when tools or a schema are asked for later."""

# ruff: noqa: ANN401 (LangChain passes keyword arguments of any kind)

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableBinding

from agentspec.langchain.structured import OutputSchema
from agentspec.langchain.tools import ToolLike

if TYPE_CHECKING:
    from agentspec.chat_models import ChatAgentSpec


class BoundChat(RunnableBinding[LanguageModelInput, AIMessage]):
    """What `ChatAgentSpec.bind` gives.

    LangChain's own binding hands these methods to the model within, which knows nothing of what was bound: tools, stop
    strings and seeds would be dropped without a word.
    """

    @classmethod
    def lc_id(cls) -> list[str]:
        """As LangChain's own, which `load` makes of it."""
        return [*cls.get_lc_namespace(), "RunnableBinding"]

    def bind_tools(self, tools: Sequence[ToolLike], **options: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """As `ChatAgentSpec.bind_tools`, beside what is bound; tools that are bound already give way."""
        bound = cast("RunnableBinding[LanguageModelInput, AIMessage]", self._model.bind_tools(tools, **options))
        return self.bind(**bound.kwargs)

    def with_structured_output(
        self, schema: OutputSchema | None = None, **options: Any
    ) -> Runnable[LanguageModelInput, Any]:
        """As `ChatAgentSpec.with_structured_output`, beside what is bound."""
        found = self._model.with_structured_output(schema, **{**self.kwargs, **options})
        return found.with_config(self.config) if self.config else found

    @property
    def _model(self) -> ChatAgentSpec:
        return cast("ChatAgentSpec", self.bound)
