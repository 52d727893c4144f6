"""A message in whichever API's form: what tracers copy from the client that they watch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Message, Said, Setting
from agentspec.replay.readers import anthropic_api, chat_api, genai_parts, langchain, responses_api
from agentspec.replay.readers.base import object_list, objects
from agentspec.replay.readers.messages import as_tools, assistant, content_of, openai_said, schema_of


def read_any(message: Mapping[str, Any]) -> list[Said]:
    """The messages that one message of an API is.

    Raises:
        TraceError: It is of no known form.
    """
    if langchain.is_message(message):
        return [langchain.read_message(message)]
    if isinstance(message.get("parts"), list):
        return genai_parts.read_message(message)
    if anthropic_api.has_blocks(message):
        return anthropic_api.read_message(message)
    if not isinstance(message.get("role"), str):
        raise TraceError("a message has no role")
    return [openai_said(message)]


def read_prompt(value: object) -> tuple[tuple[Message, ...], Setting]:
    """The messages that a model was asked with, as a text, as messages, or as the body of a request.

    Raises:
        TraceError: It is of no known form.
    """
    setting = Setting()
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if isinstance(value, dict):
        setting, value = _setting(value), _messages(value)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]  # LangChain's are batches
    items = object_list(value, "input")
    if any(responses_api.is_item(item) for item in items):
        said = responses_api.read_items(items)
    else:
        said = [each for item in items for each in read_any(item)]
    if not said:
        raise TraceError("there is no message before the answer")
    return tuple(each.message for each in said), setting


def read_answer(value: object) -> Said:
    """The message that a model answered with, as a text, as a message, or as the body of an answer.

    Raises:
        TraceError: It is of no known form.
    """
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str) and value:
        return Said(assistant(value))
    if isinstance(value, list):
        return responses_api.answer({"output": value})
    if not isinstance(value, dict) or not value:
        raise TraceError("there is no answer")
    if isinstance(value.get("choices"), list):
        return chat_api.answers(value)[0]
    if isinstance(value.get("output"), list):
        return responses_api.answer(value)
    if value.get("type") == "message" and isinstance(value.get("content"), list):
        return anthropic_api.answer(value)
    for key in ("generations", "message", "messages", "output", "text"):
        if value.get(key) and not isinstance(value.get("role"), str) and not langchain.is_message(value):
            inner = value[key]
            return read_answer(inner[-1] if key == "messages" and isinstance(inner, list) else inner)
    if langchain.is_message(value) or isinstance(value.get("role"), str):
        return _assistants(read_any(value))
    raise TraceError("the answer is of no known form")


def _assistants(said: list[Said]) -> Said:
    if len(said) != 1 or said[0].message.get("role") != "assistant":
        raise TraceError("the answer is not a model's message")
    return said[0]


def _setting(body: Mapping[str, Any]) -> Setting:
    tools = as_tools(objects(body, "tools") or objects(body, "functions"))
    model = body.get("model")
    schema = schema_of(body.get("response_format"))
    return Setting(tools=tools, schema=schema, model=model if isinstance(model, str) else "")


def _messages(body: Mapping[str, Any]) -> object:
    messages = body.get("messages", body.get("input", body.get("prompt")))
    system = body.get("system", body.get("instructions"))
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if not isinstance(messages, list) or not system:
        return messages
    return [{"role": "system", "content": content_of(system)}, *messages]
