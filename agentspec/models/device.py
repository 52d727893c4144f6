"""Which device a model runs on where none is named, and what a bug report says of it."""

from __future__ import annotations

import torch


def best_device() -> torch.device:
    """CUDA, then MPS, then the CPU: the first there is."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def describe_device() -> dict[str, str | int]:
    """The best device's kind and name, the CPU's vector instructions, and how many threads torch uses."""
    device = best_device()
    return {
        "device": device.type,
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "cpu_instructions": torch.backends.cpu.get_cpu_capability(),
        "torch_threads": torch.get_num_threads(),
    }
