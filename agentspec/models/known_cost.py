"""What a model's forwards cost on this machine: measured once, then read from the cache folder."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import torch

from agentspec import __version__
from agentspec.cache import cache_folder
from agentspec.cost import CPU_SHAPE, DEVICE_SHAPE, CostTable
from agentspec.models.cost import sample_forwards
from agentspec.models.hf import HFTarget

_loading = logging.getLogger("agentspec.loading")
_KINDS = ((1, 1), (2, 1), (4, 1), (8, 1), (16, 1), (8, 8))
_DEVICE_KINDS = (*_KINDS, (32, 1), (2, 2))
_CONTEXT = 16
_MOST_SECONDS = 2.5
_TURNS = 6
_CAPTURE_TURNS = 4
"""On CUDA a kind is captured while it runs the first few times."""


def known_cost(target: HFTarget) -> CostTable:
    """The cost of the target's forwards here, from the cache folder or measured now, in under 3 seconds.

    It is kept for each architecture, device, dtype, number of threads, and version of torch and of this package, if the
    time was enough for all of it. A file that can't be read is measured again, one that can't be written done without.
    """
    on_cpu = target.device.type == "cpu"
    belief = CPU_SHAPE if on_cpu else DEVICE_SHAPE
    kinds = _KINDS if on_cpu else _DEVICE_KINDS
    if target.context_length < _CONTEXT + max(width for width, _ in kinds):
        return CostTable(belief)
    file = cache_folder() / "costs" / f"{_identity(target)}.json"
    seconds = _read(file)
    if seconds is None:
        _loading.info("measuring what a forward costs here")
        turns = _TURNS if on_cpu else _TURNS + _CAPTURE_TURNS
        seconds = sample_forwards(target, kinds, context=_CONTEXT, turns=turns, most_seconds=_MOST_SECONDS)
        if len(seconds) == len(kinds):
            _write(file, seconds)
    return _table(seconds, belief)


def _table(seconds: Mapping[tuple[int, int], float], belief: Mapping[int, float]) -> CostTable:
    """Relative costs; widths beyond the last one that was measured are believed to grow as they do elsewhere."""
    base = seconds[1, 1]
    shape = {width: took / base for (width, rows), took in sorted(seconds.items()) if rows == 1}
    elsewhere, last = CostTable(belief), max(shape)
    for width in (width for width in belief if width > last):
        shape[width] = shape[last] * elsewhere.relative(width) / elsewhere.relative(last)
    lone = CostTable(shape)
    rows = {rows: max(took / base - lone.relative(width), 0.0) for (width, rows), took in seconds.items() if rows > 1}
    return CostTable(shape, rows={1: 0.0, **(rows or {2: 0.0})}, base_ms=1000 * base)


def _identity(target: HFTarget) -> str:
    """A digest of all that the times depend on."""
    model, device = target.model, target.device
    facts = {
        "config": model.config.to_diff_dict(),
        "layers": sorted({type(module).__name__ for module in model.modules()}),
        "dtype": str(model.dtype),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "threads": torch.get_num_threads(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "versions": [torch.__version__, __version__],
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:24]


def _read(file: Path) -> dict[tuple[int, int], float] | None:
    """The seconds by tokens and rows; None where there is no whole file of them."""
    try:
        entries = json.loads(file.read_text())
        seconds = {(int(width), int(rows)): float(took) for width, rows, took in entries}
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return None
    return seconds if (1, 1) in seconds and all(0 < took < math.inf for took in seconds.values()) else None


def _write(file: Path, seconds: Mapping[tuple[int, int], float]) -> None:
    """In one step, so that another process sees all of it or nothing."""
    staging = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        staging.write_text(json.dumps([[*kind, took] for kind, took in seconds.items()]))
        os.replace(staging, file)
    except OSError:
        with suppress(OSError):
            staging.unlink()
