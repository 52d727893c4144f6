"""The public engine: a model in this process that writes the same tokens, faster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self, Unpack

from agentspec.config import EngineConfig, SamplingParams
from agentspec.engine.core import EngineCore
from agentspec.engine.request import Event, Order
from agentspec.engine.worker import EngineWorker, Ticket
from agentspec.errors import ConfigError
from agentspec.grammar.tools import read_tools
from agentspec.local.ask import Ask, Asker, Options, Prompt
from agentspec.local.load import Placement, load_models
from agentspec.local.reader import Reader
from agentspec.local.result import Result, StreamEvent
from agentspec.local.streams import AsyncStream, LoopQueue, Stream, cancel, drain
from agentspec.proposers.base import Proposer


class Engine:
    """A loaded model. Safe to use from several threads: requests that overlap share forwards.

    Made by `Engine.load`. Close it, or use it in a `with` block, to free the memory.
    """

    def __init__(self, core: EngineCore, asker: Asker, *, speculate: bool = True) -> None:
        self._worker = EngineWorker(core)
        self._asker = asker
        self._speculate = speculate

    @classmethod
    def load(
        cls,
        model: str | None = None,
        *,
        draft: str | None = None,
        speculate: bool = True,
        proposers: Sequence[str | Proposer] | None = None,
        device: str | None = None,
        dtype: str | None = None,
        device_map: str | dict[str, object] | None = None,
        trust_remote_code: bool = False,
        allow_pickle: bool = False,
        tool_format: str | None = None,
        config: EngineConfig | None = None,
    ) -> Self:
        """Load a model.

        Args:
            model: A folder, a hub id, a `.gguf` file, or a name that `agentspec models` lists; None: a small embedded
                default, fetched once.
            draft: A smaller model with the same tokenizer, likewise.
            speculate: Off: plain decoding, unless a request says otherwise.
            proposers: Names of drafting sources, "grammar", "shape", "suffix" and "model", or proposers of your own, in
                the order of trust. None: all.
            device: "cuda", "mps", "cpu" and so on; None: the best there is.
            dtype: "float32", "bfloat16" and so on; None: float32 on the CPU, elsewhere the checkpoint's.
            device_map: Spreads the layers over devices, as transformers does; instead of `device`.
            trust_remote_code: Run the Python code that a model brings along.
            allow_pickle: Take weights in pickle files, which can run code when they are read.
            tool_format: How the model writes tool calls, a name in `agentspec.chat.formats.registry.FORMATS`; None: as
                its chat template shows, or, where that knows none, as "plain": told in the system turn.
            config: Sizes.

        Raises:
            ModelError: The model can't be found, fetched, read or run, or the draft model does not fit it.
            ConfigError: A setting can't be honoured.
        """
        placement = Placement(
            device=device,
            dtype=dtype,
            device_map=device_map,
            trust_remote_code=trust_remote_code,
            allow_pickle=allow_pickle,
            tool_format=tool_format,
        )
        config = EngineConfig() if config is None else config
        if not isinstance(config, EngineConfig):
            raise ConfigError(f"config must be an EngineConfig, not {config!r}")
        loaded = load_models(model, draft, placement=placement, config=config)
        return cls(loaded.core(proposers, config), loaded.asker, speculate=speculate)

    def generate(self, prompt: Prompt, params: SamplingParams | None = None, **options: Unpack[Options]) -> Result:
        """Write an answer and return it whole.

        Args:
            prompt: Text that the model goes on from, token ids, or OpenAI messages. With tools, a text is taken as a
                user's message.
            params: How to sample; by default greedily, until the model ends or the context is full.
            options: See `Options`.

        Raises:
            PromptError: The prompt can't be used, or is too long for the context.
            GrammarError: What the output is held to can't be enforced.
            ConfigError: A parameter or option can't be honoured.
            EngineError: The engine was closed, or a forward failed.
        """
        orders, readers = self._read(prompt, params, options)
        queues: list[SimpleQueue[Event]] = [SimpleQueue() for _ in orders]
        tickets = self._submit(orders, [queue.put for queue in queues])
        try:
            results = [drain(queue, reader) for queue, reader in zip(queues, readers, strict=True)]
        except BaseException:
            cancel(tickets)
            raise
        return replace(results[0], alternatives=tuple(results[1:]))

    def stream(
        self, prompt: Prompt, params: SamplingParams | None = None, **options: Unpack[Options]
    ) -> Iterator[StreamEvent]:
        """Write an answer and yield it piece by piece; `n` must be 1. Arguments and errors as for `generate`.

        The request starts at once and is cancelled when the iterator is closed.
        """
        _check_one(params)
        orders, (reader,) = self._read(prompt, params, options)
        queue: SimpleQueue[Event] = SimpleQueue()
        tickets = self._submit(orders, [queue.put])
        return Stream(queue, reader, tickets)

    async def agenerate(
        self, prompt: Prompt, params: SamplingParams | None = None, **options: Unpack[Options]
    ) -> Result:
        """`generate` without blocking the event loop; cancelling the task cancels the request."""
        return await (await self.start(prompt, params, **options)).whole()

    async def astream(
        self, prompt: Prompt, params: SamplingParams | None = None, **options: Unpack[Options]
    ) -> AsyncIterator[StreamEvent]:
        """`stream` without blocking the event loop."""
        _check_one(params)
        async with aclosing(await self.start(prompt, params, **options)) as events:
            async for event in events:
                yield event

    async def start(
        self, prompt: Prompt, params: SamplingParams | None = None, **options: Unpack[Options]
    ) -> AsyncStream:
        """Start a request and return the events of its answers, of all `n` as they come: each tells its `index`.

        What can't be used is refused here, before anything is written. Arguments and errors as for `generate`. Close
        the events to cancel the request.
        """
        orders, readers = await asyncio.to_thread(self._read, prompt, params, options)
        queue = LoopQueue()
        tickets = self._submit(orders, [partial(queue.put, index) for index in range(len(orders))])
        return AsyncStream(queue, readers, tickets, prompt=orders[0].prompt)

    def tokens(self, prompt: Prompt, tools: Sequence[Mapping[str, Any]] = ()) -> list[int]:
        """A prompt's tokens for this model."""
        return self._asker.tokens(prompt, read_tools(tools))

    def count_tokens(self, prompt: Prompt, tools: Sequence[Mapping[str, Any]] = ()) -> int:
        """How many tokens a prompt has for this model."""
        return len(self.tokens(prompt, tools))

    def spell(self, token: int, *, control: bool = True) -> bytes:
        """A token's text as bytes, not always whole characters; a control token's name, or nothing if not `control`."""
        return self._asker.spell(token, control=control)

    def close(self) -> None:
        """End running requests with an error and free the memory. Closing twice is harmless."""
        self._worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(
        self, prompt: Prompt, params: SamplingParams | None, options: Options
    ) -> tuple[list[Order], list[Reader]]:
        if options.get("speculate") is None:
            options = {**options, "speculate": self._speculate}
        return self._asker.read(Ask(prompt, params or SamplingParams(), options))

    def _submit(self, orders: Sequence[Order], listeners: Sequence[Callable[[Event], None]]) -> list[Ticket]:
        return [
            self._worker.submit(replace(order, listener=listener))
            for order, listener in zip(orders, listeners, strict=True)
        ]


def _check_one(params: SamplingParams | None) -> None:
    if params is not None and isinstance(params, SamplingParams) and params.n > 1:
        raise ConfigError(f"a stream has one answer, not n={params.n}: use generate, start, or several streams")
