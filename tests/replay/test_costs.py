"""What a forward costs, computed and from files."""

from __future__ import annotations

import pytest

from agentspec.errors import ConfigError
from agentspec.replay.costs import read_price


def test_a_computed_price_is_weights_over_bandwidth_and_products_over_the_peak() -> None:
    price = read_price("computed:H100:7b:bf16")

    assert price.computed
    assert price.base_ms == pytest.approx(14e9 / (3.35e12 * 0.8) * 1e3 + 14e9 / (989e12 * 0.6) * 1e3)
    assert price.shape[1] == price.low[1] == price.high[1] == 1.0
    assert price.low[16] < price.shape[16] < price.high[16] < 1.2  # bound by memory
    assert read_price("computed:t4:7b:fp16").shape[128] > 1.8  # by arithmetic


def test_a_measured_price_has_the_ends_that_were_measured(tmp_path) -> None:
    file = tmp_path / "cost.json"
    file.write_text('{"cost_ms": {"agentspec": {"1": 10, "4": 12}}, "quartiles_ms": {"agentspec": {"4": [11, 15]}}}')
    price = read_price(str(file))

    assert (price.base_ms, price.shape[4], price.low[4], price.high[4]) == (10.0, 1.2, 1.1, 1.5)
    assert price.seconds({1: 2, 4: 1}, price.high) == pytest.approx(0.035)


@pytest.mark.parametrize(
    ("times", "spread"), [("NaN", "[1, 2]"), ("1e400", "[1, 2]"), ("2", "[]"), ("2", "[-1, 3]"), ("2", "[1, NaN]")]
)
def test_a_cost_file_with_numbers_that_are_no_times_is_refused(tmp_path, times: str, spread: str) -> None:
    file = tmp_path / "cost.json"
    costs = f'{{"1": 1, "4": {times}}}'
    file.write_text(f'{{"cost_ms": {{"agentspec": {costs}}}, "quartiles_ms": {{"agentspec": {{"4": {spread}}}}}}}')

    with pytest.raises(ConfigError, match="holds no costs of forwards"):
        read_price(str(file))


def test_a_cost_that_was_measured_on_a_busy_machine_is_refused(tmp_path) -> None:
    file = tmp_path / "cost.json"
    file.write_text('{"cost_ms": {"agentspec": {"1": 100, "2": 96, "4": 66}}}')

    with pytest.raises(ConfigError, match=r"a forward of 4 tokens that costs 0\.66 times one of a single token"):
        read_price(str(file))
