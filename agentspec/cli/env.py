"""`agentspec env`: what a bug report needs."""

from __future__ import annotations

import os
import platform
from importlib import metadata

from agentspec import __version__
from agentspec.cache import cache_folder
from agentspec.cli.console import new_table, out, print_json
from agentspec.cli.options import Json

_PACKAGES = ("torch", "transformers", "tokenizers", "llguidance", "outlines", "langchain-core", "gguf", "numpy")


def env(as_json: Json = False) -> None:
    """Print versions, device and cache folder for a bug report."""
    report = _report()
    if as_json:
        print_json(report)
        return
    table = new_table("", "")
    table.show_header = False
    for name, value in report.items():
        table.add_row(name.replace("_", " "), str(value))
    out.print(table)


def _report() -> dict[str, str | int]:
    from agentspec.models.device import describe_device

    return {
        "agentspec": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        **{package: _version(package) for package in _PACKAGES},
        **describe_device(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0,
        "cache_folder": str(cache_folder()),
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
