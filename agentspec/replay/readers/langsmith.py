"""Runs of LangSmith: exports, and the batches that its clients upload.

Source: langchain-ai/langsmith-sdk, the `Run` schema and the multipart and batch ingestion. A run of `run_type` `llm`
holds the messages before the answer in `inputs` and the answer in `outputs`: LangChain's dumped messages
(`generations`), or what the client of a wrapped API sent and got. Tools are in `extra.invocation_params`. A batch has
`post` and `patch`, the parts of a run as it began and as it ended. Runs of chains and tools are passed by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentspec.errors import TraceError
from agentspec.replay.conversations import Call, Setting
from agentspec.replay.readers.any_message import read_answer, read_prompt
from agentspec.replay.readers.base import Format, Item, Record, name_at, object_at, object_list, objects, rows
from agentspec.replay.readers.messages import as_tools


def read(record: Record) -> Iterator[Item]:
    """The calls of a run, of a list of them, or of a batch.

    Raises:
        TraceError: It can't be used.
    """
    if "run_type" in record.value:
        yield from _run(record, record.value)
        return
    for run in _runs(record.value):
        try:
            yield from _run(record, run)
        except TraceError as error:
            yield record.skipped(f"a run: {error}")


def _runs(value: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """The runs of a list or batch; the parts of one are put together."""
    found: dict[str, dict[str, Any]] = {}
    for place, part in enumerate([*objects(value, "runs"), *objects(value, "post"), *objects(value, "patch")]):
        run = found.setdefault(name_at(part, "id") or name_at(part, "dotted_order") or str(place), {})
        run |= {key: each for key, each in part.items() if each is not None}
    by_order = {str(run.get("dotted_order")): run for run in found.values() if "run_type" in run}
    for run in found.values():  # the end of a run may come without its id
        start = by_order.get(str(run.get("dotted_order")))
        if start is not None and start is not run:
            start |= run
    return [run for run in found.values() if "run_type" in run]


def _run(record: Record, run: Mapping[str, Any]) -> Iterator[Item]:
    if run.get("run_type") != "llm":
        return
    outputs = object_at(run, "outputs")
    if not outputs:
        raise TraceError("the run has no outputs" + (": it ended with an error" if run.get("error") else ""))
    inputs = object_at(run, "inputs")
    messages, setting = read_prompt(inputs)
    params = object_at(object_at(run, "extra"), "invocation_params")
    tools = as_tools(object_list(params.get("tools") or params.get("functions"), "tools")) or setting.tools
    model = name_at(object_at(object_at(run, "extra"), "metadata"), "ls_model_name") or setting.model
    yield Call(
        file=record.file,
        line=record.line,
        trace_id=name_at(run, "trace_id", "id") or f"line {record.line}",
        messages=messages,
        answer=read_answer(outputs),
        setting=Setting(tools=tools, schema=setting.schema, model=model),
    )


def _recognises(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    lists = [value.get(key) for key in ("runs", "post", "patch")]
    runs = [run for each in lists if isinstance(each, list) for run in each]
    return any(isinstance(run, dict) and isinstance(run.get("run_type"), str) for run in [value, *runs])


FORMAT = Format(
    "LangSmith",
    "runs of LangSmith, exported or as they are uploaded",
    "run_type; or runs, post or patch with such runs",
    _recognises,
    rows(read),
)
