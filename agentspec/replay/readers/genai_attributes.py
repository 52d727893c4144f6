"""A model's messages in the attributes of a span, by OpenTelemetry's conventions for generative AI.

Source: OpenTelemetry's semantic conventions for generative AI: `gen_ai.input.messages`, `gen_ai.output.messages` and
`gen_ai.system_instructions`, lists of parts (see `genai_parts`), `gen_ai.tool.definitions`, each as a value or as its
JSON text. And what was written before them: OpenLLMetry's numbered attributes (`gen_ai.prompt.0.role`,
`gen_ai.completion.0.content`, `gen_ai.prompt.0.tool_calls.0.arguments`, `llm.request.functions.0.name`), and the
conventions' events `gen_ai.user.message`, `gen_ai.choice` and their like, on the span.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Message, Said, Setting
from agentspec.replay.readers.any_message import read_any
from agentspec.replay.readers.base import name_at, object_list, parsed
from agentspec.replay.readers.messages import as_tools, call, content_of, openai_said
from agentspec.replay.readers.numbered import numbered

_OPERATIONS = frozenset({"chat", "generate_content", "text_completion"})


def read(
    attributes: Mapping[str, Any], events: Sequence[tuple[str, Mapping[str, Any]]]
) -> tuple[tuple[Message, ...], Said, Setting] | None:
    """The messages before the answer, the answer, and the setting; None: it is no call of a model.

    Args:
        attributes: Of the span.
        events: On the span: their names, and their attributes with their bodies.

    Raises:
        TraceError: It can't be used.
    """
    asked, wrote = _messages(attributes, "gen_ai.input.messages"), _messages(attributes, "gen_ai.output.messages")
    if not wrote:
        asked, wrote = _old(attributes, "gen_ai.prompt"), _old(attributes, "gen_ai.completion")
    if not wrote:
        asked, wrote = _events(events)
    if not wrote:
        if name_at(attributes, "gen_ai.operation.name") in _OPERATIONS:
            raise TraceError("the span of a model's call has no messages: its tracer left them out")
        return None
    system = parsed(attributes.get("gen_ai.system_instructions"))
    told = [each.message for each in asked]
    if system and not (told and told[0].get("role") == "system"):
        told.insert(0, {"role": "system", "content": _instructions(system)})
    if not told:
        raise TraceError("there is no message before the answer")
    if wrote[0].message.get("role") != "assistant":
        raise TraceError("the answer is not a model's message")
    tools = as_tools(_tools(attributes))
    model = name_at(attributes, "gen_ai.response.model", "gen_ai.request.model")
    return tuple(told), wrote[0], Setting(tools=tools, model=model)


def _messages(attributes: Mapping[str, Any], name: str) -> list[Said]:
    return [said for message in object_list(parsed(attributes.get(name)), name) for said in read_any(message)]


def _instructions(system: object) -> Any:  # noqa: ANN401
    if not isinstance(system, list):
        return content_of(system)
    return content_of(
        [{**part, "text": part.get("content")} for part in object_list(system, "gen_ai.system_instructions")]
    )


def _tools(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    tools = object_list(parsed(attributes.get("gen_ai.tool.definitions")), "gen_ai.tool.definitions")
    functions = numbered(attributes, "llm.request.functions")
    return tools or [{**function, "parameters": parsed(function.get("parameters"))} for function in functions]


def _old(attributes: Mapping[str, Any], name: str) -> list[Said]:
    """Messages in numbered attributes."""
    return [_old_message(fields) for fields in numbered(attributes, name)]


def _old_message(fields: Mapping[str, Any]) -> Said:
    given = object_list(fields.get("tool_calls"), "tool_calls")
    calls = [call(name_at(made, "name"), made.get("arguments"), name_at(made, "id")) for made in given]
    message = {"role": fields.get("role"), "content": content_of(_parts(fields.get("content")))}
    if fields.get("tool_call_id"):
        message["tool_call_id"] = fields["tool_call_id"]
    inexact = any(not isinstance(made.get("arguments"), str) for made in given)
    return Said(message | ({"tool_calls": calls} if calls else {}), inexact)


def _parts(content: object) -> object:
    """A content that is the JSON text of a list of parts as that list; any other as it is."""
    value = parsed(content)
    whole = isinstance(value, list) and value and all(isinstance(part, dict) and "type" in part for part in value)
    return value if whole else content


def _events(events: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[list[Said], list[Said]]:
    """The messages in a span's events, before the answer and of it."""
    asked, wrote = [], []
    for name, body in events:
        if name == "gen_ai.choice":
            message = parsed(body.get("message"))
            wrote.append(_event({**(message if isinstance(message, dict) else body), "role": "assistant"}))
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            asked.append(_event({"role": name.split(".")[1], **body}))
    return asked, wrote


def _event(body: Mapping[str, Any]) -> Said:
    kept: dict[str, Any] = {"role": body.get("role"), "content": body.get("content")}
    if calls := parsed(body.get("tool_calls")):
        kept["tool_calls"] = calls
    if body.get("id") and kept["role"] == "tool":
        kept["tool_call_id"] = body["id"]
    return openai_said(kept)
