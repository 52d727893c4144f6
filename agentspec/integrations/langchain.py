"""Records LangChain runs, with any chat model, as traces that `agentspec replay` answers anew."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
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
from agentspec.grammar.tools import read_tool
from agentspec.langchain.call import read_prediction
from agentspec.langchain.structured import read_response_format, response_format
from agentspec.langchain.tools import read_tool_choice
from agentspec.own_file import append_line, first_line
from agentspec.replay.asks import reason
from agentspec.replay.convert import json_line
from agentspec.replay.readers.langchain import read_message
from agentspec.replay.readers.messages import as_tools

_LOG = logging.getLogger(__name__)
_OPTIONS = {"regex": str, "lark": str, "json_whitespace": str, "parallel_tool_calls": bool}
_ENDS = {
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict", "ls_max_tokens"),
    "stop": ("ls_stop", "stop", "stop_sequences"),  # ChatOpenAI's own `stop` hides a call's in its parameters
}
"""Names of where an answer has to end, as providers and LangChain's metadata tell it."""

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
        tools = self._tools(asked.get("tools"))
        options, params = self._options(asked, tools), self._params(asked, metadata)
        self._asked[run_id] = {
            "trace_id": str(metadata.get("thread_id") or run_id),
            "model": str(metadata.get("ls_model_name") or asked.get("model_name") or asked.get("model") or ""),
            "messages": said,
            **_told("tools", tools),
            **self._held_to(asked),
            **_told("asked", {**_told("options", options), **_told("params", params)}),
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

    def _tools(self, given: object) -> list[dict[str, Any]]:
        """Those that can be called anew, in OpenAI's form: not what only a provider can run."""
        if given is not None and not isinstance(given, list | tuple):
            self._warn("tools of this form are not recorded", given)
            return []
        found = []
        for tool in given or ():
            try:
                found.append(_tool(tool))
            except Exception:  # whatever it is, it must not cost the answer
                self._warn("a tool of this form is not recorded", tool)
        return found

    def _options(self, asked: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """What else was asked, in the engine's terms."""
        options: dict[str, Any] = {}
        for name, kind in _OPTIONS.items():
            if isinstance(asked.get(name), kind):
                options[name] = asked[name]
            elif asked.get(name) is not None:
                self._warn(f"{name} of this form is not recorded", asked[name])
        choice, prediction = asked.get("tool_choice"), asked.get("prediction")
        if isinstance(choice, Mapping) and choice.get("disable_parallel_tool_use"):
            options["parallel_tool_calls"] = False
        if prediction:
            options |= self._read("prediction", lambda: read_prediction(prediction))
        if choice is not None and tools:
            options |= self._read("tool_choice", lambda: read_tool_choice(_named(choice), tools))
        return options

    def _params(self, asked: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Where the answer had to end; of the rest, a seed most of all, the next model makes something else."""
        ollamas = asked.get("options")
        langchains = {name: metadata.get(name) for name in ("ls_max_tokens", "ls_stop")}
        places = (ollamas if isinstance(ollamas, Mapping) else {}, langchains | {**asked})
        found: dict[str, Any] = {}
        for name, names in _ENDS.items():
            told = (place[each] for place in places for each in names if place.get(each) is not None)
            value = next(told, None)
            unlimited = type(value) is int and value < 0  # as Ollama tells it
            if value and not unlimited:
                found |= self._read(name, partial(_param, name, value))
        return found

    def _held_to(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """OpenAI's response format for what the answer was held to: that, or what Ollama takes as `format`."""
        given, ollamas = asked.get("response_format"), asked.get("format")
        if given is None and ollamas:
            given = _ANY_OBJECT if ollamas == "json" else {"type": "json_schema", "json_schema": {"schema": ollamas}}
        if given is None:
            return {}
        try:
            found = response_format(given) if isinstance(given, type) else given
            return {"response_format": found} if read_response_format(found) is not None else {}
        except Exception:  # a class may have no schema, for many reasons
            self._warn("a response format of this form is not recorded", given)
            return {}

    def _read(self, name: str, read: Callable[[], object]) -> dict[str, Any]:
        """What is read, under its name; where it can't be, that costs nothing else."""
        try:
            return {name: read()}
        except ConfigError as error:
            self._warn(f"{name} is not recorded: {reason(error)}")
        except Exception:
            self._warn(f"{name} of this form is not recorded")
        return {}

    def _append(self, row: Mapping[str, Any]) -> None:
        line = json_line(row, separators=(",", ":"), default=str).encode()
        try:
            with self._lock:
                append_line(self._path, line)
        except OSError as error:
            self._warn(f"{self._path} can't be written, answers are not recorded: {error.strerror}")

    def _warn(self, why: str, *shown: object) -> None:
        text = ": ".join([why, *(str(each)[:80] for each in shown)])
        if text not in self._warned:
            self._warned.add(text)
            _LOG.warning("%s", text)


def _told(name: str, value: Collection[Any]) -> dict[str, Any]:
    return {name: value} if value else {}


def _tool(tool: Any) -> dict[str, Any]:  # noqa: ANN401
    """In OpenAI's form.

    Raises:
        ConfigError: It can't be called anew; a tool that a provider runs itself can't.
    """
    if isinstance(tool, dict) and tool.get("type") not in (None, "object"):  # an object's is a schema's, with a title
        found: dict[str, Any] = next(iter(as_tools([tool])), tool)
    else:
        found = convert_to_openai_tool(tool)
    read_tool(found)
    return found


def _named(choice: object) -> object:
    """Anthropic's object as the text that says the same; any other choice as it is."""
    if isinstance(choice, Mapping) and choice.get("type") in ("auto", "any", "none"):
        return choice["type"]
    if isinstance(choice, Mapping) and choice.get("type") == "tool" and isinstance(choice.get("name"), str):
        return choice["name"]
    return choice


def _param(name: str, value: object) -> object:
    SamplingParams.of({name: value})
    return value


def _check(path: Path) -> None:
    try:
        head = first_line(path)
    except OSError as error:
        raise ConfigError(f"{path} can't be recorded to: {error.strerror}") from error
    if head is None:
        raise ConfigError(f"{path} is no file: name one to record to")
    if head.strip() and not head.startswith(b'{"trace_id":'):
        raise ConfigError(f"{path} holds something else than a trace: name another file to record to")
