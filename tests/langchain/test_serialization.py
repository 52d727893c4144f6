"""What stands for a chat model outside its process, and in caches: its settings, never its weights."""

from __future__ import annotations

import json

import pytest
from engine_doubles import scripted_engine
from langchain_core.caches import InMemoryCache
from langchain_core.load import dumps, loads
from pydantic import create_model

from agentspec import ChatAgentSpec

pytestmark = pytest.mark.filterwarnings("ignore:The function `loads` is in beta")


def test_a_dump_holds_settings_and_makes_an_equal_model() -> None:
    model = ChatAgentSpec(model="m", stop=["x"], bad_words=[(1, 2), "no"], logit_bias={5: 1.5}, api_key="secret")
    dumped = dumps(model)
    assert "secret" not in dumped
    assert json.loads(dumped)["kwargs"]["logit_bias"] == {"5": 1.5}
    again = loads(dumped, allowed_objects=[ChatAgentSpec], valid_namespaces=["agentspec"])
    assert again.asdict() == model.asdict()


def test_a_loaded_engine_is_not_dumped() -> None:
    with scripted_engine("ok") as engine:
        dumped = dumps(ChatAgentSpec(engine=engine))
    assert json.loads(dumped)["type"] == "not_implemented"
    with pytest.raises(NotImplementedError):
        loads(dumped, allowed_objects=[ChatAgentSpec], valid_namespaces=["agentspec"])


def test_an_answer_is_cached_for_the_same_question_only() -> None:
    cache = InMemoryCache()
    with scripted_engine("one\ntwo") as engine, scripted_engine("other") as other:
        model = ChatAgentSpec(engine=engine, cache=cache, seed=1)
        first = model.invoke("hi")
        forwards = engine.target.forwards
        assert model.invoke("hi").content == first.content == "one\ntwo"
        assert engine.target.forwards == forwards
        # The tempting key, LangChain's own, has neither the model's stop strings nor which engine it is.
        assert ChatAgentSpec(engine=engine, cache=cache, seed=1, stop=["\n"]).invoke("hi").content == "one"
        assert model.invoke("hi", stop=["t"]).content == "one\n"
        assert ChatAgentSpec(engine=other, cache=cache, seed=1).invoke("hi").content == "other"


def test_classes_of_one_name_have_answers_of_their_own() -> None:
    cache = InMemoryCache()
    classes = [create_model("Answer", **{name: (bool, ...)}) for name in ("a", "b")]  # type: ignore[call-overload]
    with scripted_engine("No.") as engine:
        model = ChatAgentSpec(engine=engine, cache=cache)
        answers = [model.invoke("hi", response_format=each).content for each in classes]
        tools = [model.invoke("hi", tools=[each], tool_choice="any").tool_calls[0]["args"] for each in classes]
    assert answers == ['{"a": false}', '{"b": false}']
    assert tools == [{"a": False}, {"b": False}]
