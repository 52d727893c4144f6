"""`--record`: each finished request as one line that `agentspec replay` reads; docs/recording.md describes it."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

from agentspec import __version__
from agentspec.errors import ConfigError
from agentspec.local.result import Result, StreamEvent
from agentspec.own_file import append_line, first_line
from agentspec.replay.readers.recording import NAME, VERSION
from agentspec.server.desk import Asked, Running
from agentspec.server.problems import Problem
from agentspec.trace import StepRecord

_LOG = logging.getLogger(__name__)

_TEXT_OPTIONS = ("regex", "lark", "prediction", "caller")
_PLAIN_OPTIONS = ("parallel_tool_calls", "json_whitespace", "speculate")
_TEXT_PARAMS = ("stop", "bad_words")


class Recorder:
    """A watcher that appends requests which were answered to a file that only its owner may read.

    Lines are made and written by a thread of its own. What can't be written is warned about once; later requests are
    tried again.

    Args:
        path: Made if it is not there.
        model: What clients call it.
        redact: Token ids and digests instead of texts.

    Raises:
        ConfigError: The path can't be written, or holds something else.
    """

    def __init__(self, path: Path, *, model: str, redact: bool) -> None:
        self._path = path
        self._model = model
        self._redact = redact
        self._warned = False
        _check(path)
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="agentspec-recording")

    def started(self, running: Running) -> None:
        """Nothing to record yet."""

    def wrote(self, running: Running, event: StreamEvent) -> None:
        """Nothing to record yet."""

    def ended(self, running: Running, problem: Problem | None) -> None:
        """Record it, unless it could not be finished."""
        if problem is None:
            seconds = monotonic() - running.started
            self._writer.submit(self._append, running, seconds, datetime.now(UTC) - timedelta(seconds=seconds))

    def close(self) -> None:
        """Wait until everything is written."""
        self._writer.shutdown()

    def _append(self, running: Running, seconds: float, started: datetime) -> None:
        try:
            head = {
                "format": NAME,
                "version": VERSION,
                "agentspec": __version__,
                "model": self._model,
                "redacted": self._redact,
                "trace_id": running.id,
                "time": started.isoformat(timespec="milliseconds"),
                "seconds": round(seconds, 4),
            }
            row = head | row_of(running, redact=self._redact)
            append_line(self._path, json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode())
        except Exception as error:  # whatever it is, it must not be worse than a line less
            if not self._warned:
                self._warned = True
                _LOG.warning("%s can't be written, requests are not recorded: %s", self._path, error)


def row_of(running: Running, *, redact: bool) -> dict[str, Any]:
    """What was asked and answered, in the form of a recorded conversation as far as that goes.

    Args:
        running: Answered.
        redact: Token ids and digests instead of texts.
    """
    asked, results = running.asked, [running.results[index] for index in sorted(running.results)]
    return {
        "api": asked.api,
        **_conversation(asked, results[0], redact=redact),
        "prompt": {"tokens": list(running.prompt), **_prompt_text(asked, redact=redact)},
        "params": _params(asked, results[0], redact=redact),
        "options": _options(asked, redact=redact),
        "answers": [_answer(result, redact=redact) for result in results],
    }


def _conversation(asked: Asked, result: Result, *, redact: bool) -> dict[str, Any]:
    """The keys of a recorded conversation: the first answer is its last message."""
    prompt = () if isinstance(asked.prompt, str) else asked.prompt
    messages = [message for message in prompt if isinstance(message, Mapping)]
    if not messages:
        return _held(asked, redact=redact)
    told = [*messages, result.message]
    tools = asked.options.get("tools") or ()
    return {
        "messages": [{"role": message.get("role"), **digest(message)} for message in told] if redact else told,
        "targets": [len(messages)],
        **({"tools": [digest(tool) for tool in tools] if redact else tools} if tools else {}),
        **_held(asked, redact=redact),
    }


def _prompt_text(asked: Asked, *, redact: bool) -> dict[str, Any]:
    if not isinstance(asked.prompt, str):
        return {}
    return {"text": digest(asked.prompt) if redact else asked.prompt}


def _held(asked: Asked, *, redact: bool) -> dict[str, Any]:
    schema = asked.options.get("json_schema")
    if schema is None:
        return {}
    wrapped = {"schema": digest(schema) if redact else schema}
    return {"response_format": {"type": "json_schema", "json_schema": wrapped}}


def _params(asked: Asked, result: Result, *, redact: bool) -> dict[str, Any]:
    params = asdict(replace(asked.params, seed=result.seed))
    if redact:
        for name in _TEXT_PARAMS:
            params[name] = [digest(each) if isinstance(each, str) else each for each in params[name]]
    return params


def _options(asked: Asked, *, redact: bool) -> dict[str, Any]:
    options: Mapping[str, Any] = asked.options
    texts = {name: options[name] for name in _TEXT_OPTIONS if options.get(name)}
    plain = {name: options[name] for name in _PLAIN_OPTIONS if options.get(name) is not None}
    choice = options.get("tool_choice")
    told = choice if not redact or choice in ("auto", "required", "none") else digest(choice)
    return {
        **plain,
        **({"tool_choice": told} if choice is not None else {}),
        **({name: digest(text) for name, text in texts.items()} if redact else texts),
    }


def _answer(result: Result, *, redact: bool) -> dict[str, Any]:
    return {
        "finish_reason": result.finish_reason,
        "text": digest(result.text) if redact else result.text,
        "tokens": result.tokens,
        "usage": asdict(result.usage),
        "prefill_ms": round(result.stats.prefill_ms, 3),
        "rounds": [_round(record) for record in result.rounds],
    }


def _round(record: StepRecord) -> dict[str, Any]:
    draft = record.draft
    return {
        "segment": record.segment.value,
        "draft": {
            "tokens": draft.tokens,
            "parents": draft.parents,
            "scores": draft.scores,
            "sources": draft.sources,
            "segments": [segment.value for segment in record.segments],
        },
        "path": record.path,
        "tokens": record.tokens,
        "rows": record.rows,
        "width": record.width,
        "propose_ms": round(record.propose_ms, 3),
        "forward_ms": round(record.forward_ms, 3),
        "total_ms": round(record.total_ms, 3),
    }


def digest(value: object) -> dict[str, str]:
    """What stands for a text or a JSON value that is not recorded: equal values have equal digests."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"))
    return {"sha256": hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()}


def _check(path: Path) -> None:
    """Before a model is loaded: whether lines can be appended here."""
    try:
        head = first_line(path)
    except OSError as error:
        raise ConfigError(f"--record {path} can't be written: {error.strerror}") from error
    if head is None:
        raise ConfigError(f"--record {path} is no file: name one")
    if head.strip() and not head.startswith(f'{{"format":"{NAME}"'.encode()):
        raise ConfigError(f"--record {path} holds something else than a recording: name another file")
