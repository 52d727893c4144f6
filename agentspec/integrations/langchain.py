"""Records LangChain runs, with any chat model, as traces that `agentspec replay` answers anew."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.utils.function_calling import convert_to_openai_tool

from agentspec.config import SamplingParams
from agentspec.errors import ConfigError
from agentspec.langchain.call import read_prediction
from agentspec.langchain.structured import read_response_format, response_format
from agentspec.langchain.tools import read_tool_choice
from agentspec.own_file import append_line, first_line
from agentspec.replay.readers.langchain import read_message

_LOG = logging.getLogger(__name__)
_OPTIONS = {"regex": str, "lark": str, "json_whitespace": str, "parallel_tool_calls": bool}
_ANY_OBJECT = {"type": "json_object"}


def record(path: str | PathLike[str]) -> TraceRecorder:
    """A callback that appends each answer of a chat model to a file which `agentspec replay` reads.

    Give it to a run, `agent.invoke(question, {"callbacks": [record("trace.jsonl")]})`, or to a model. Nothing is
    sent anywhere. The file holds what was asked and answered, and is made readable by its owner only.

    Args:
        path: Made if it is not there; what is in it stays.

    Raises:
        ConfigError: The path can't be written, or holds something else.
    """
    return TraceRecorder(Path(path).expanduser())


class TraceRecorder(BaseCallbackHandler):
    """What `record` makes. Safe for runs in several threads and tasks; a run never fails because of it.

    What can't be recorded is warned about once for each reason: a line that can't be written, tools and the like of a
    form that nothing here knows.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._asked: dict[UUID, dict[str, Any]] = {}
        self._warned: set[str] = set()
        _check(path)

    def on_chat_model_start(
        self,
        serialized: Mapping[str, Any] | None,
        messages: Sequence[Sequence[BaseMessage]],
        *,
        run_id: UUID,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        """Keep what was asked until it is answered."""
        asked, metadata = kwargs.get("invocation_params") or {}, metadata or {}
        said = [read_message(message.model_dump()).message for message in messages[0]]
        tools = self._tools(asked.get("tools") or ())
        held_to = self._held_to(asked)
        self._asked[run_id] = {
            "trace_id": str(metadata.get("thread_id") or run_id),
            "model": str(metadata.get("ls_model_name") or asked.get("model_name") or asked.get("model") or ""),
            "messages": said,
            **({"tools": tools} if tools else {}),
            **({"response_format": held_to} if held_to else {}),
            **_told("asked", {**_told("options", self._options(asked, tools)), **_told("params", _params(asked))}),
        }

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ANN401
        """Write it with its answer: the first one, where there are several."""
        asked = self._asked.pop(run_id, None)
        found = response.generations[0][0] if response.generations and response.generations[0] else None
        if asked is None or not isinstance(found, ChatGeneration):
            return
        answer = read_message(found.message.model_dump())
        place = len(asked["messages"])
        row = {**asked, "messages": [*asked["messages"], answer.message], "targets": [place]}
        self._append({**row, "approximate": [place] if answer.approximate else []})

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ANN401
        """Forget it: there is no answer."""
        self._asked.pop(run_id, None)

    def _tools(self, given: Sequence[Any]) -> list[dict[str, Any]]:
        found = []
        for tool in given:
            try:
                found.append(convert_to_openai_tool(tool))
            except (ValueError, TypeError, KeyError):
                self._warn(f"a tool of this form is not recorded: {str(tool)[:80]}")
        return found

    def _options(self, asked: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """What else was asked, in the engine's terms."""
        options = {name: asked[name] for name, kind in _OPTIONS.items() if isinstance(asked.get(name), kind)}
        choice, prediction = asked.get("tool_choice"), asked.get("prediction")
        if isinstance(choice, Mapping) and choice.get("disable_parallel_tool_use"):
            options["parallel_tool_calls"] = False
        try:
            if prediction:
                options["prediction"] = read_prediction(prediction)
            if choice is not None and tools:
                options["tool_choice"] = read_tool_choice(_named(choice), tools)
        except ConfigError as error:
            self._warn(f"what was asked is not recorded whole: {str(error)[:120]}")
        return options

    def _held_to(self, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        """OpenAI's response format for what the answer was held to: that, or what Ollama takes as `format`."""
        given, ollamas = asked.get("response_format"), asked.get("format")
        if given is None and ollamas:
            given = _ANY_OBJECT if ollamas == "json" else {"type": "json_schema", "json_schema": {"schema": ollamas}}
        if isinstance(given, type):
            return response_format(given)
        try:
            return given if given is not None and read_response_format(given) is not None else None
        except ConfigError:
            self._warn(f"a response format of this form is not recorded: {str(given)[:80]}")
            return None

    def _append(self, row: Mapping[str, Any]) -> None:
        line = json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=str).encode(errors="replace")
        try:
            with self._lock:
                append_line(self._path, line)
        except OSError as error:
            self._warn(f"{self._path} can't be written, answers are not recorded: {error.strerror}")

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            _LOG.warning("%s", text)


def _told(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value} if value else {}


def _named(choice: object) -> object:
    """Anthropic's object as the text that says the same; any other choice as it is."""
    kind = choice.get("type") if isinstance(choice, Mapping) else None
    if isinstance(choice, Mapping) and kind in ("auto", "any", "none", "tool"):
        return choice.get("name") if kind == "tool" else kind
    return choice


def _params(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Where the answer had to end; of what else was set, a seed most of all, the next model makes something else."""
    given = {name: asked[name] for name in ("max_tokens", "stop") if asked.get(name)}
    try:
        SamplingParams.of(given)
    except ConfigError:
        return {}
    return given


def _check(path: Path) -> None:
    try:
        head = first_line(path)
    except OSError as error:
        raise ConfigError(f"{path} can't be recorded to: {error.strerror}") from error
    if head is None:
        raise ConfigError(f"{path} is no file: name one to record to")
    if head.strip() and not head.startswith(b'{"trace_id":'):
        raise ConfigError(f"{path} holds something else than a trace: name another file to record to")
