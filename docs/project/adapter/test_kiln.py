"""The kiln keeps the contract and has the values that are known without this software."""

import pytest
from kiln import kiln

import pkd


@pytest.mark.parametrize("lag", [0, 1, 3])
def test_the_kiln_keeps_the_contract(lag):
    pkd.check_model(*kiln(lag))


def test_without_a_lag_every_step_is_in_the_good_range():
    # From any heat of 5 to 7 some command leads to 7, and 7 less a draught of 0 to 2 is 5 to 7.
    assert pkd.plan(kiln(lag=0, horizon=12)).value == 12.0


def test_a_long_lag_is_compiled_without_listing_the_queues():
    compiled = pkd.compile(kiln(lag=9, horizon=12)[0])
    assert compiled.engine == "stripes", compiled.why
