"""What a forward costs on a machine that need not be here: measured by `agentspec bench --cost`, or computed.

A computed profile is named as one, such as `computed:h100:7b:bf16`. It is made of two times: the one in which the
weights are read, at 80 % of the memory's bandwidth, and the one in which so many tokens are multiplied with them, at
60 % of the peak. Their sum is what a forward is taken to cost. Attention over the context is left out: it is read once
for all tokens of a forward, so a long one makes wide forwards cheaper than computed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentspec.cost import DEVICE_SHAPE, CostTable
from agentspec.errors import ConfigError

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128)

DEVICES = {
    "h200": (4.80, 989, 1979),
    "h100": (3.35, 989, 1979),
    "a100": (2.04, 312, 624),
    "l40s": (0.864, 362, 733),
    "a10": (0.600, 125, 250),
    "l4": (0.300, 121, 242),
    "t4": (0.320, 65, 130),
    "rtx4090": (1.008, 165, 330),
    "rtx3090": (0.936, 71, 142),
    "mi300x": (5.30, 1307, 2615),
}
"""By name: memory bandwidth in TB/s, dense peak in 16 bits and in 8 bits in TFLOP/s, as the makers state them."""

DTYPES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5}
"""Bytes of a weight; 4-bit weights are multiplied in 16 bits."""

_DISTURBED = 0.9  # of a forward of one token; wider ones cost no less
_MOST = 1e9  # milliseconds, or times a forward of one token
_READ, _PEAK, _WORST_PEAK = 0.8, 0.6, 0.3
_NAME = re.compile(r"computed:([a-z0-9]+):(\d+(?:\.\d+)?)b:([a-z0-9]+)")
_FORM = "computed:DEVICE:SIZEb:DTYPE, such as computed:h100:7b:bf16"
_HOW = f"a file that `agentspec bench --cost --json` wrote, or {_FORM}"


@dataclass(frozen=True, slots=True)
class Price:
    """What a forward costs.

    Attributes:
        name: Of the profile, or of the file.
        computed: Whether nobody measured it.
        base_ms: Of a forward of one token; 0: only the shape is believed.
        shape: Cost by width, relative to a width of 1.
        low: The same at its lowest.
        high: The same at its highest.
    """

    name: str
    computed: bool
    base_ms: float
    shape: Mapping[int, float]
    low: Mapping[int, float]
    high: Mapping[int, float]

    def table(self) -> CostTable:
        """For a controller, which learns in it."""
        return CostTable(self.shape, base_ms=self.base_ms or 1.0)

    def seconds(self, widths: Mapping[int, int], shape: Mapping[int, float]) -> float:
        """Of so many forwards of each width, under one of the shapes."""
        table = CostTable(shape)
        return self.base_ms / 1000 * sum(count * table.relative(width) for width, count in widths.items())

    @property
    def wire(self) -> dict[str, Any]:
        """As reports show it."""
        relative = {str(width): round(cost, 3) for width, cost in self.shape.items()}
        return {"name": self.name, "computed": self.computed, "base_ms": round(self.base_ms, 4), "relative": relative}


BELIEVED = Price("", True, 0.0, DEVICE_SHAPE, DEVICE_SHAPE, DEVICE_SHAPE)
"""Where no cost is given: how a GPU's forwards grow with their width, and no time."""


def read_price(named: str) -> Price:
    """A profile by its name, or the cost in a file.

    Raises:
        ConfigError: There is neither.
    """
    if not named:
        raise ConfigError(f"--cost is empty: give {_HOW}")
    if named.startswith("computed:"):
        return _computed(named)
    try:
        value = json.loads(Path(named).read_bytes())
    except OSError as error:
        raise ConfigError(f"--cost {named} can't be read: {error.strerror}; give {_HOW}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--cost {named} is not JSON: give {_HOW}") from error
    try:
        price = _measured(named, value)
    except (TypeError, ValueError, AttributeError, ArithmeticError, LookupError) as error:
        raise ConfigError(f"--cost {named} holds no costs of forwards: give {_HOW}") from error
    width, least = min(price.shape.items(), key=lambda pair: pair[1])
    if least < _DISTURBED:
        raise ConfigError(
            f"--cost {named} has a forward of {width} tokens that costs {least:.2f} times one of a single token: "
            "something else kept the machine busy, measure again when it is idle"
        )
    return price


def _measured(name: str, value: dict[str, Any]) -> Price:
    took = {int(width): float(ms) for width, ms in value["cost_ms"]["agentspec"].items()}
    spread = value.get("quartiles_ms", {}).get("agentspec", {})
    base = took[1]
    if len(took) < 2:
        raise ValueError
    ends = {width: spread.get(str(width), (took[width], took[width])) for width in took}
    shape, low, high = (
        {width: each / base for width, each in sorted(found.items())}
        for found in (
            took,
            {w: float(end[0]) for w, end in ends.items()},
            {w: float(end[1]) for w, end in ends.items()},
        )
    )
    if min(took) < 1 or not all(0 < each < _MOST for each in (base, *shape.values(), *low.values(), *high.values())):
        raise ValueError  # NaN too
    return Price(Path(name).name, False, base, shape, {**low, 1: 1.0}, {**high, 1: 1.0})


def _computed(name: str) -> Price:
    found = _NAME.fullmatch(name.lower())
    if found is None or found[1] not in DEVICES or found[3] not in DTYPES or not 0 < float(found[2]) <= 2000:
        raise ConfigError(
            f"no profile is called {name!r}: it is {_FORM}, with DEVICE of {', '.join(DEVICES)} and "
            f"DTYPE of {', '.join(DTYPES)}"
        )
    bandwidth, half_peak, byte_peak = DEVICES[found[1]]
    weights, size = float(found[2]) * 1e9, DTYPES[found[3]]
    peak = byte_peak if size == 1 else half_peak
    read_ms = 1000 * weights * size / (bandwidth * 1e12 * _READ)
    token_ms = 1000 * 2 * weights / (peak * 1e12)
    base = read_ms + token_ms / _PEAK
    shape = {width: (read_ms + width * token_ms / _PEAK) / base for width in WIDTHS}
    high = {width: (read_ms + width * token_ms / _WORST_PEAK) / (read_ms + token_ms / _WORST_PEAK) for width in WIDTHS}
    low = {width: max(1.0, width * token_ms / _PEAK / read_ms) for width in WIDTHS}
    return Price(name.lower(), True, base, shape, low, high)
