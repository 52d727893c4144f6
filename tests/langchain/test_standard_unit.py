"""LangChain's own unit tests of chat models. They build models and load none."""

from __future__ import annotations

from langchain_tests.unit_tests import ChatModelUnitTests

from agentspec import ChatAgentSpec


class TestChatAgentSpec(ChatModelUnitTests):
    @property
    def chat_model_class(self) -> type[ChatAgentSpec]:
        return ChatAgentSpec

    @property
    def chat_model_params(self) -> dict:
        return {"model": "smollm2-135m"}
