"""ATIF, the Agent Trajectory Interchange Format, versions 1.0 to 1.7.

Source: Harbor's RFC 0001 (`rfcs/0001-trajectory-format.md` of harbor-framework/harbor). One JSON object a trajectory:
`schema_version`, `agent` (`name`, `model_name`, `tool_definitions`), and `steps` of source `system`, `user` or `agent`,
each with a `message`, an agent's with `reasoning_content`, `tool_calls` (arguments are objects: the model's white space
is lost) and the `observation` that followed. `metrics` may hold `prompt_token_ids` and `completion_token_ids`: what the
model read and wrote, to the token. A step with `is_copied_context`, or with `llm_call_count` 0, is part of the prompt
only; one that sums up several calls of the model is approximate. `subagent_trajectories` are conversations of their
own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Ids, Said, Setting, Transcript
from agentspec.replay.readers.base import Format, Item, Record, ids_at, name_at, object_at, objects, rows, text_at
from agentspec.replay.readers.messages import as_tools, assistant, call, content_of, text_of, tool_result

_DEEPEST = 16  # trajectories within one another


def read(record: Record) -> Iterator[Item]:
    """The conversations of one trajectory, those of its subagents after it.

    Raises:
        TraceError: It can't be used.
    """
    yield from _trajectory(record, record.value, 0)


def _trajectory(record: Record, value: Mapping[str, Any], depth: int) -> Iterator[Item]:
    agent = object_at(value, "agent")
    transcript = Transcript()
    for step in objects(value, "steps"):
        _add(transcript, step)
    if not transcript.messages:
        raise TraceError("steps is missing or empty")
    trace_id = name_at(value, "trajectory_id", "session_id") or f"line {record.line}"
    setting = Setting(tools=as_tools(objects(agent, "tool_definitions")), model=name_at(agent, "model_name"))
    yield from transcript.conversation(record.file, record.line, trace_id, setting=setting)
    for inner in objects(value, "subagent_trajectories") if depth < _DEEPEST else ():
        try:
            yield from _trajectory(record, inner, depth + 1)
        except TraceError as error:
            yield record.skipped(f"a subagent's trajectory: {error}")


def _add(transcript: Transcript, step: Mapping[str, Any]) -> None:
    source = step.get("source")
    if source not in ("system", "user", "agent"):
        raise TraceError("a step's source is not system, user or agent")
    if source == "agent":
        prompt_only = step.get("is_copied_context") is True or step.get("llm_call_count") == 0
        transcript.add(_agent(step), target=not prompt_only)
    else:
        transcript.add(Said({"role": source, "content": content_of(step.get("message"))}))
    for result in objects(object_at(step, "observation"), "results"):
        transcript.add(Said(_observed(result)))


def _agent(step: Mapping[str, Any]) -> Said:
    calls = [
        call(text_at(made, "function_name"), made.get("arguments"), text_at(made, "tool_call_id"))
        for made in objects(step, "tool_calls")
    ]
    metrics = object_at(step, "metrics")
    tokens = ids_at(metrics, "completion_token_ids")
    summed = step.get("llm_call_count")
    inexact = any(not isinstance(made.get("arguments"), str) for made in objects(step, "tool_calls"))
    message = assistant(text_of(step.get("message")), calls, reasoning=text_at(step, "reasoning_content"))
    ids = Ids(tokens, ids_at(metrics, "prompt_token_ids")) if tokens else None
    return Said(message, inexact or (isinstance(summed, int) and summed > 1), ids)


def _observed(result: Mapping[str, Any]) -> dict[str, Any]:
    content = result.get("content")
    if content is None:
        content = {key: value for key, value in result.items() if key != "source_call_id"}
    if not result.get("source_call_id"):
        return {"role": "user", "content": content_of(content)}
    return tool_result(text_at(result, "source_call_id"), content)


def _recognises(value: object) -> bool:
    version = value.get("schema_version") if isinstance(value, dict) else None
    return isinstance(version, str) and version.startswith("ATIF-")


FORMAT = Format(
    "ATIF",
    "trajectories of agents in Harbor's interchange format, with token ids where they were kept",
    "schema_version ATIF-...",
    _recognises,
    rows(read),
)
