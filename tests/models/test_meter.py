"""Energy, from counters as Linux and NVML show them; no machine that runs these tests needs to have any."""

from __future__ import annotations

import sys
from math import inf
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from agentspec.models import meter
from agentspec.models.meter import Energy, read_energy


@pytest.fixture
def rapl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two packages at 5 and 7 joules, which begin again at 100, and a part of the first."""
    for name, micro in (("intel-rapl:0", 5_000_000), ("intel-rapl:1", 7_000_000), ("intel-rapl:0:0", 1_000_000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "energy_uj").write_text(f"{micro}\n")
        (tmp_path / name / "max_energy_range_uj").write_text("100000000\n")
    monkeypatch.setattr(meter, "_RAPL", tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    return tmp_path


def test_packages_count_once_and_begin_again(rapl: Path) -> None:
    before = read_energy()
    (rapl / "intel-rapl:0" / "energy_uj").write_text("6500000\n")
    (rapl / "intel-rapl:1" / "energy_uj").write_text("1000000\n")
    after = read_energy()

    assert before == Energy((5.0, 7.0), (100.0, 100.0))
    assert after is not None
    assert after.since(before) == 1.5 + 94


def test_a_gpu_counts_in_millijoules(rapl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetTotalEnergyConsumption=lambda handle: 2500,
    )
    alone = read_energy()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setitem(sys.modules, "pynvml", library)
    both = read_energy()

    assert both == Energy((5.0, 7.0, 2.5), (100.0, 100.0, inf))
    assert alone is not None
    assert both.since(alone) is None


def test_nothing_is_told_where_nothing_may_be_read(rapl: Path) -> None:
    (rapl / "intel-rapl:1" / "energy_uj").write_text("no number")

    assert read_energy() is None
