"""Events of OpenHands' software agent SDK (1.x): a JSON list of them, one a line, or the `items` of its events API.

Source: OpenHands/software-agent-sdk, `openhands/sdk/event/`. Each has a `kind`. A `SystemPromptEvent` holds the prompt
and the tools, a `MessageEvent` an `llm_message`, an `ActionEvent` what the model thought and one call, whose arguments
are a text; actions of one `llm_response_id` are one answer. Results come as `ObservationEvent`, `AgentErrorEvent` and
`UserRejectObservation`. Where an action has no `tool_call`, its own fields are taken as the arguments: approximate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Said, Setting, Transcript
from agentspec.replay.readers.base import Format, Item, Record, name_at, nothing, object_at, objects, text_at
from agentspec.replay.readers.messages import as_tools, assistant, call, content_of, text_of, tool_result

_RESULTS = {"AgentErrorEvent": "error", "UserRejectObservation": "rejection_reason"}
_SILENT = frozenset(
    {
        "ConversationStateUpdateEvent",
        "StateEvent",
        "PauseEvent",
        "TokenEvent",
        "StreamingDeltaEvent",
        "LLMCompletionLogEvent",
        "CondensationRequest",
        "CondensationSummaryEvent",
    }
)


class Reader:
    """Collects the events of one conversation."""

    def __init__(self) -> None:
        self._events = _Events()
        self._first: Record | None = None

    def feed(self, record: Record) -> Iterable[Item]:
        """Take an event, or a page of them."""
        if "kind" in record.value:
            self._events.take(record.value)
            self._first = self._first or record
            return nothing()
        events, found = _Events(), []
        for event in record.value["items"]:
            try:
                events.take(event)
            except TraceError as error:
                found.append(record.skipped(f"an event: {error}"))
        return [*found, *events.conversation(record)]

    def finish(self) -> Iterable[Item]:
        """The conversation."""
        return self._events.conversation(self._first) if self._first else nothing()


class _Events:
    def __init__(self) -> None:
        self._transcript = Transcript()
        self._tools: tuple[dict[str, Any], ...] = ()
        self._calls: dict[str, str] = {}  # ids of calls by their action's
        self._written: list[Mapping[str, Any]] = []  # actions of the answer that is being read

    def conversation(self, record: Record) -> Iterable[Item]:
        self._answer()
        setting = Setting(tools=self._tools)
        return self._transcript.conversation(record.file, record.line, f"line {record.line}", setting=setting)

    def take(self, event: object) -> None:
        if not isinstance(event, dict) or not isinstance(event.get("kind"), str):
            raise TraceError("not an event")
        kind = event["kind"]
        if kind == "ActionEvent":
            self._act(event)
        elif kind not in _SILENT:
            self._answer()
            self._tell(kind, event)

    def _tell(self, kind: str, event: Mapping[str, Any]) -> None:
        if kind == "SystemPromptEvent":
            self._tools = as_tools(objects(event, "tools"))
            self._transcript.add(Said({"role": "system", "content": content_of([object_at(event, "system_prompt")])}))
        elif kind == "MessageEvent":
            self._message(event)
        elif kind == "ObservationEvent":
            observation = object_at(event, "observation")
            content = observation.get("content", {key: value for key, value in observation.items() if key != "kind"})
            self._result(event, content)
        elif kind in _RESULTS:
            self._result(event, text_at(event, _RESULTS[kind]))
        else:
            raise TraceError(f"an event of unknown kind {kind[:40]!r}")

    def _message(self, event: Mapping[str, Any]) -> None:
        message = object_at(event, "llm_message")
        if event.get("source") == "agent":
            thought = text_at(message, "reasoning_content")
            self._transcript.add(Said(assistant(text_of(message.get("content")), reasoning=thought)))
        else:
            self._transcript.add(Said({"role": "user", "content": content_of(message.get("content"))}))

    def _result(self, event: Mapping[str, Any], content: object) -> None:
        action = text_at(event, "action_id")
        call_id = text_at(event, "tool_call_id") or self._calls.get(action, "")
        if call_id:
            self._transcript.add(Said(tool_result(call_id, content)))
        else:
            self._transcript.add(Said({"role": "user", "content": content_of(content)}))

    def _act(self, event: Mapping[str, Any]) -> None:
        response = text_at(event, "llm_response_id")
        if self._written and (not response or response != text_at(self._written[0], "llm_response_id")):
            self._answer()
        _call(event)  # that it can be used
        self._calls[text_at(event, "id")] = _call_id(event)
        self._written.append(event)

    def _answer(self) -> None:
        """Add the answer that was read, if there is one."""
        if not self._written:
            return
        texts = [text_of(event.get("thought")) for event in self._written]
        thoughts = [text_at(event, "reasoning_content") for event in self._written]
        inexact = any(not isinstance(object_at(event, "tool_call").get("arguments"), str) for event in self._written)
        message = assistant("".join(texts), list(map(_call, self._written)), reasoning="".join(thoughts))
        self._transcript.add(Said(message, inexact))
        self._written = []


def _call(event: Mapping[str, Any]) -> dict[str, Any]:
    made = object_at(event, "tool_call")
    arguments = made.get("arguments")
    if arguments is None:
        arguments = {key: value for key, value in object_at(event, "action").items() if key != "kind"}
    text_of(event.get("thought")), text_at(event, "reasoning_content")
    return call(text_at(event, "tool_name") or text_at(made, "name"), arguments, _call_id(event))


def _call_id(event: Mapping[str, Any]) -> str:
    return text_at(event, "tool_call_id") or name_at(object_at(event, "tool_call"), "id") or text_at(event, "id")


def _recognises(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    items = value.get("items")
    return any(map(_is_event, items)) if isinstance(items, list) else _is_event(value)


def _is_event(event: object) -> bool:
    kind = event.get("kind") if isinstance(event, dict) else None
    return isinstance(kind, str) and kind.endswith(("Event", "Observation", "Condensation", "CondensationRequest"))


FORMAT = Format(
    "OpenHands",
    "events of OpenHands' software agent SDK",
    "kind ...Event; or items of such events",
    _recognises,
    Reader,
)
