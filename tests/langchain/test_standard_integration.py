"""LangChain's own integration tests of chat models.

`AGENTSPEC_TEST_MODEL` names a model, by its folder or a known name, that answers all of them. Without it SmolLM2 does,
held to what the tests ask for; where a test asks for more wit than it has, a scripted target writes the answers, and
everything else is the real thing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from engine_doubles import scripted_engine
from langchain_core.messages import AIMessage
from langchain_tests.integration_tests import ChatModelIntegrationTests

from agentspec import ChatAgentSpec

CHOSEN = os.environ.get("AGENTSPEC_TEST_MODEL")
FOR_THE_WITTY = (
    "test_tool_calling",
    "test_tool_calling_async",
    "test_tool_calling_with_no_arguments",
    "test_json_mode",
    "test_agent_loop",
    "test_unicode_tool_call_integration",
)


def witty(prompt: str) -> str:
    """What a capable model answers to the questions of those tests."""
    if "It's sunny." in prompt:
        return "It is sunny in San Francisco."
    for asked, name, arguments in (
        ("magic_function(3)", "magic_function", '{"input": 3}'),
        ("magic_function_no_args()", "magic_function_no_args", "{}"),
        ("weather in San Francisco", "get_weather", '{"location": "San Francisco, CA"}'),
        ("'你好啊集团'", "unicode_customer", '{"customer_name": "你好啊集团", "description": "A company."}'),
        ("'こんにちは株式会社'", "unicode_customer", '{"customer_name": "こんにちは株式会社", "description": "One."}'),
    ):
        if asked in prompt:
            return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'
    return '{"setup": "Why do cats sit on keyboards?", "punchline": "To keep an eye on the mouse."}'


@pytest.mark.real_model
@pytest.mark.filterwarnings("ignore:Benchmark fixture was not used")  # nothing is fetched that could be timed
class TestChatAgentSpec(ChatModelIntegrationTests):
    folder: ClassVar[Path]
    other: ClassVar[Path]

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _models(
        cls, smollm2: Path, real_model: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[None]:
        cls.other = tmp_path_factory.mktemp("models") / "other"
        cls.other.symlink_to(smollm2)
        cls.folder = smollm2
        if CHOSEN:
            cls.folder = Path(CHOSEN) if Path(CHOSEN).is_dir() else real_model(CHOSEN)
        yield
        ChatAgentSpec(model=str(cls.folder)).close()
        ChatAgentSpec(model=str(cls.other)).close()

    @pytest.fixture
    def model(self, request: pytest.FixtureRequest) -> Iterator[ChatAgentSpec]:
        given = getattr(request, "param", {})
        if CHOSEN or request.node.originalname not in FOR_THE_WITTY:
            prose = not any(word in request.node.originalname for word in ("structured", "tool", "agent"))
            short = {"max_tokens": 32} if prose else {}  # what is said does not matter there
            yield ChatAgentSpec(**{**self.chat_model_params, **short, **given})
        else:
            with scripted_engine(witty, context_length=16_384) as engine:
                yield ChatAgentSpec(engine=engine, **given)

    @property
    def chat_model_class(self) -> type[ChatAgentSpec]:
        return ChatAgentSpec

    @property
    def chat_model_params(self) -> dict:
        # A small model says the same again and again, within a string too, and would never close it.
        return {"model": str(self.folder), "max_tokens": 128, "frequency_penalty": 0.0 if CHOSEN else 0.5}

    @property
    def supports_json_mode(self) -> bool:
        return True

    @property
    def supports_anthropic_inputs(self) -> bool:
        return True

    @property
    def enable_vcr_tests(self) -> bool:
        return True

    @property
    def model_override_value(self) -> str:
        return str(self.other)

    @property
    def supported_usage_metadata_details(self) -> Any:
        return {"invoke": ["cache_read_input"], "stream": ["cache_read_input"]}

    def invoke_with_cache_read_input(self, *, stream: bool = False) -> AIMessage:
        model = ChatAgentSpec(**self.chat_model_params, streaming=stream)
        model.invoke("Hello")
        answer = model.invoke("Hello")
        assert answer.usage_metadata["input_token_details"]["cache_read"] > 10
        return answer
