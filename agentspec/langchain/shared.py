"""Engines that the chat models of a process share, and how synchronous callers wait for them."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from agentspec.models.embedded import DEFAULT, KNOWN

if TYPE_CHECKING:
    from agentspec.local.engine import Engine

_T = TypeVar("_T")


class EngineRegistry:
    """Loads each engine once: whoever asks with the same settings gets the same one. Safe in any thread."""

    def __init__(self) -> None:
        self.forget()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Begin anew, in a forked process: the engines of the one before work only there."""
        self._engines: dict[str, Engine] = {}
        self._lock = threading.Lock()

    def get(self, settings: Mapping[str, Any]) -> Engine:
        """The engine for these arguments of `Engine.load`, loaded now if nobody asked before.

        Raises:
            ModelError, ConfigError: It can't be loaded.
        """
        key = _key(settings)
        engine = self._engines.get(key)  # without the lock: a load must not hold up engines that run
        if engine is None:
            with self._lock:
                engine = self._engines.get(key) or _load(settings)
                self._engines[key] = engine
        return engine

    def close(self, settings: Mapping[str, Any]) -> None:
        """Free the engine for these settings, if there is one; the next `get` loads it anew."""
        with self._lock:
            engine = self._engines.pop(_key(settings), None)
        if engine is not None:
            engine.close()


def _key(settings: Mapping[str, Any]) -> str:
    model, draft = settings.get("model"), settings.get("draft")
    places = {"model": _place(DEFAULT if model is None else model), "draft": None if draft is None else _place(draft)}
    return json.dumps({**settings, **places}, sort_keys=True)


def _place(model: str) -> str:
    """One text for one model, by whatever name it is called."""
    path = KNOWN[model].folder if model in KNOWN else Path(model).expanduser()
    return str(path.resolve()) if model in KNOWN or path.exists() else model


def _load(settings: Mapping[str, Any]) -> Engine:
    from agentspec.local.engine import Engine  # brings torch, which a chat model must not need before its first use

    return Engine.load(**settings)


class _Loop:
    """An event loop in a thread of its own, started with the first call.

    Synchronous callers wait for a coroutine in it, so that a request which runs out of time, or whose caller is
    interrupted, is cancelled at once, whether or not the caller's thread runs a loop already.
    """

    def __init__(self) -> None:
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Begin anew, in a forked process, where the thread is not."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def get(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="agentspec-calls", daemon=True).start()
            return self._loop


_LOOP = _Loop()


def wait_for(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """The coroutine's value, waited for in this thread; it is cancelled when the wait is interrupted."""
    future = asyncio.run_coroutine_threadsafe(coroutine, _LOOP.get())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def iterate(items: AsyncGenerator[_T]) -> Iterator[_T]:
    """The generator's items, waited for in this thread; it is cancelled when this iterator is closed."""
    queue: SimpleQueue[tuple[_T] | None] = SimpleQueue()

    async def pump() -> None:
        try:
            async with aclosing(items):
                async for item in items:
                    queue.put((item,))
        finally:
            queue.put(None)

    future = asyncio.run_coroutine_threadsafe(pump(), _LOOP.get())
    try:
        while (found := queue.get()) is not None:
            yield found[0]
        future.result()
    finally:
        future.cancel()
