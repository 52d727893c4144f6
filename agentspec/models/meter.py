"""What this machine says of the energy that it used and of the memory that this process took, where it says so."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

_RAPL = Path("/sys/class/powercap")
_MIB = 2**20


def energy_joules() -> float | None:
    """A counter that only grows: of the CPU packages (Linux, RAPL) and of the GPUs (NVML, if `pynvml` is installed).

    It is the whole machine's, so that it tells nothing of one process beside others. None where nothing is told.
    """
    found = [joules for joules in (_packages(), _gpus()) if joules is not None]
    return sum(found) if found else None


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


def _packages() -> float | None:
    try:
        counters = [
            int(file.read_text())
            for file in sorted(_RAPL.glob("intel-rapl:[0-9]*/energy_uj"))
            if file.parent.name.count(":") == 1
        ]
    except (OSError, ValueError):  # often only root may read it
        return None
    return sum(counters) / 1e6 if counters else None


def _gpus() -> float | None:
    if not torch.cuda.is_available():
        return None
    try:
        import pynvml as nvml

        nvml.nvmlInit()
        handles = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
        millijoules = [float(nvml.nvmlDeviceGetTotalEnergyConsumption(handle)) for handle in handles]
    except Exception:  # not installed, no driver, or a device that doesn't count
        return None
    return sum(millijoules) / 1000
