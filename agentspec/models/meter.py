"""What this machine says of the energy that it used and of the memory that this process took, where it says so."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import inf
from pathlib import Path

import torch

_RAPL = Path("/sys/class/powercap")
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Energy:
    """What the counters of energy show: of the whole machine, so that they tell nothing of one process beside others.

    Attributes:
        joules: Of each counter.
        wraps: Where each begins again from 0, in joules; infinite where it doesn't.
    """

    joules: tuple[float, ...]
    wraps: tuple[float, ...]

    def since(self, before: Energy) -> float | None:
        """Joules between two readings, the later one's; None where a counter came or went.

        A counter that begins again more than once in between tells too little: on RAPL that takes minutes at full load.
        """
        if self.wraps != before.wraps:
            return None
        pairs = zip(self.joules, before.joules, self.wraps, strict=True)
        return sum(now - then if now >= then else now - then + wrap for now, then, wrap in pairs)


def read_energy() -> Energy | None:
    """Of the CPU packages (Linux, RAPL) and of the GPUs (NVML, if `pynvml` is installed); None: nothing is told."""
    counters = [*_packages(), *_gpus()]
    return Energy(*zip(*counters, strict=True)) if counters else None


def peak_memory_mib() -> dict[str, float | None]:
    """The most memory that this process has had so far, and that torch has had on the GPU; None where it isn't told."""
    on_gpu = torch.cuda.max_memory_allocated() / _MIB if torch.cuda.is_available() else None
    return {"peak_memory_mib": _resident(), "peak_device_memory_mib": on_gpu}


def _resident() -> float | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / _MIB if sys.platform == "darwin" else peak / 1024


def _packages() -> list[tuple[float, float]]:
    folders = [path.parent for path in sorted(_RAPL.glob("intel-rapl:[0-9]*/energy_uj"))]
    try:
        return [
            (_micro(folder / "energy_uj"), _micro(folder / "max_energy_range_uj"))
            for folder in folders
            if folder.name.count(":") == 1  # a package, not one of its parts
        ]
    except (OSError, ValueError):  # often only root may read it
        return []


def _micro(file: Path) -> float:
    return int(file.read_text()) / 1e6


def _gpus() -> list[tuple[float, float]]:
    if not torch.cuda.is_available():
        return []
    try:
        import pynvml as nvml

        nvml.nvmlInit()
        handles = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
        return [(nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000, inf) for handle in handles]
    except Exception:  # not installed, no driver, or a device that doesn't count
        return []
