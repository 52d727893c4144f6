"""A model's messages in the attributes of a span, by OpenInference's conventions.

Source: Arize-ai/openinference, `spec/semantic_conventions.md`: spans of `openinference.span.kind` LLM with numbered
attributes `llm.input_messages.0.message.role`, `.content`, `.contents.0.message_content.text`,
`.tool_calls.0.tool_call.function.arguments` (a text), `llm.output_messages`, `llm.tools.0.tool.json_schema`. Exports
may have the lists as lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Message, Said, Setting
from agentspec.replay.readers.base import name_at, object_at, objects, parsed
from agentspec.replay.readers.messages import as_tools, assistant, call, content_of, text_of, tool_result
from agentspec.replay.readers.numbered import numbered


def read(attributes: Mapping[str, Any]) -> tuple[tuple[Message, ...], Said, Setting] | None:
    """The messages before the answer, the answer, and the setting; None: it is no call of a model.

    Raises:
        TraceError: It can't be used.
    """
    asked = [_said(object_at(each, "message")) for each in numbered(attributes, "llm.input_messages")]
    wrote = [_said(object_at(each, "message")) for each in numbered(attributes, "llm.output_messages")]
    if not wrote:
        if attributes.get("openinference.span.kind") == "LLM":
            raise TraceError("the span of a model's call has no messages: its tracer left them out")
        return None
    if not asked:
        raise TraceError("there is no message before the answer")
    if wrote[0].message["role"] != "assistant":
        raise TraceError("the answer is not a model's message")
    tools = [parsed(object_at(each, "tool").get("json_schema")) for each in numbered(attributes, "llm.tools")]
    setting = Setting(
        tools=as_tools(tool for tool in tools if isinstance(tool, dict)), model=name_at(attributes, "llm.model_name")
    )
    return tuple(each.message for each in asked), wrote[0], setting


def _said(message: Mapping[str, Any]) -> Said:
    role = name_at(message, "role")
    content = message.get("content") or [object_at(each, "message_content") for each in objects(message, "contents")]
    if role == "tool":
        return Said(tool_result(name_at(message, "tool_call_id"), content, name_at(message, "name")))
    if role not in ("assistant", "model"):
        return Said({"role": role, "content": content_of(content)})
    calls = [_call(object_at(each, "tool_call")) for each in objects(message, "tool_calls")]
    if name := name_at(message, "function_call_name"):
        calls.append(call(name, message.get("function_call_arguments_json")))
    return Said(assistant(text_of(content), calls), any(not exact for exact in _exact(message)))


def _call(made: Mapping[str, Any]) -> dict[str, Any]:
    function = object_at(made, "function")
    return call(name_at(function, "name"), function.get("arguments"), name_at(made, "id"))


def _exact(message: Mapping[str, Any]) -> list[bool]:
    """Whether the arguments of each call are a text."""
    functions = [object_at(object_at(each, "tool_call"), "function") for each in objects(message, "tool_calls")]
    return [isinstance(function.get("arguments"), str) for function in functions]
