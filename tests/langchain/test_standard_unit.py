"""LangChain's own unit tests of chat models. They build models and load none."""

from __future__ import annotations

import importlib

import pytest
from langchain_tests.unit_tests import ChatModelUnitTests

from agentspec import ChatAgentSpec


@pytest.mark.filterwarnings("ignore:.*(BaseChatModel.dict|`load`):Warning")  # the suite itself calls them
class TestChatAgentSpec(ChatModelUnitTests):
    @pytest.fixture(autouse=True)
    def _partner(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """LangChain's "all" means the partners on its own list; others are named, as in `test_serialization.py`."""
        lists = importlib.import_module("langchain_core.load.load")._default_class_paths_cache
        monkeypatch.setitem(lists, "all", {tuple(ChatAgentSpec.lc_id())})

    @property
    def chat_model_class(self) -> type[ChatAgentSpec]:
        return ChatAgentSpec

    @property
    def chat_model_params(self) -> dict:
        return {"model": "smollm2-135m"}

    @property
    def init_from_env_params(self) -> tuple[dict, dict, dict]:
        # No setting is taken from the environment: the one variable of ours moves the cache, and changes no field.
        return {"AGENTSPEC_CACHE": "/elsewhere"}, self.chat_model_params, {"model": "smollm2-135m", "api_key": None}
