"""Lost sales: a log that says "at least" gives honest intervals, one that hides it does not."""

from __future__ import annotations

import random

import pandas as pd
import pytest

import pkd
from pkd.cli import main
from pkd.transforms import Censored
from pkd.transforms.censored import Coin, More
from pkd_examples.gambler import gambler
from pkd_examples.inventory import inventory

DEMAND = {0: 0.1, 1: 0.15, 2: 0.2, 3: 0.25, 4: 0.3}
SIZES = {"horizon": 4, "capacity": 4, "max_order": 4, "max_demand": 4, "lead_time": 0, "stock": 1}
SIZES["shortage"] = 0.5
MODEL = inventory(**SIZES, demand=1).model()
LAW = {0: DEMAND}
COINS = Censored(MODEL)


def draw_sales(days, seed):
    """What a shop sees that has 1 to 4 units in the morning: (sold, whether it was sold out)."""
    rng = random.Random(seed)
    for _ in range(days):
        stock = rng.choice((1, 1, 1, 1, 2, 4))
        demand = rng.choices(list(DEMAND), weights=DEMAND.values())[0]
        yield min(demand, stock), demand >= stock


def test_the_optimum_and_every_policy_keep_their_values():
    assert pkd.plan(COINS, COINS.law(LAW)).value == pytest.approx(pkd.plan(MODEL, LAW).value)

    def fill_up(h, x, y):
        return max(0, 3 - y[1])

    values = [pkd.evaluate(m, law, fill_up) for m, law in ((MODEL, LAW), (COINS, COINS.law(LAW)))]
    assert values[0] == pytest.approx(values[1])
    assert values[0].variance == pytest.approx(values[1].variance)
    pkd.check_model(COINS, COINS.law(LAW))


def test_the_coins_multiply_to_the_law():
    law, left = COINS.law(LAW), 1.0
    for k in range(4):
        here, more = COINS.outcomes(Coin(0, k))
        assert left * law(Coin(0, k))[here] == pytest.approx(DEMAND[k])
        left *= law(Coin(0, k))[more]
    assert left == pytest.approx(DEMAND[4])


def test_samples_are_counted_by_hand():
    """0; 2; at least 2; at least 4, which is 4."""
    rows = [{"z": 0, "x": x} for x in ("0", "2", ">=2", ">= 4")]
    log = pkd.read_log(pd.DataFrame(rows), COINS)
    assert dict(log) == {
        Coin(0, 0): {0: 1.0, More.MORE: 3.0},
        Coin(0, 1): {More.MORE: 3.0},
        Coin(0, 2): {2: 1.0, More.MORE: 1.0},
        Coin(0, 3): {4: 1.0},
    }
    marked = [{"z": 0, "x": x, "censored": c} for x, c in ((0, 0), (2, 0), (2, 1), (4, "true"))]
    assert dict(pkd.read_log(pd.DataFrame(marked), COINS)) == dict(log)


def test_the_truth_is_in_the_interval_of_every_log_and_not_where_lost_sales_are_hidden():
    """60 logs of 1,500 days at delta = 0.05: eight misses have a probability below 1%."""
    best = pkd.plan(MODEL, LAW).value
    compiled, coins = pkd.compile(MODEL), pkd.compile(COINS)
    held = hidden = 0
    for seed in range(60):
        days = list(draw_sales(1500, seed))
        counts: dict = {}
        for sold, out in days:
            for coin, x in COINS.list_samples(0, sold, censored=out):
                counts.setdefault(coin, {}).setdefault(x, 0)
                counts[coin][x] += 1
        found = pkd.certify(coins, counts)
        held += found.low <= best <= found.high
        wrong = pkd.certify(compiled, [(0, sold) for sold, _ in days])
        hidden += wrong.low <= best <= wrong.high
    assert held >= 53
    assert hidden == 0


def test_the_command_line_takes_such_a_log(tmp_path, capsys):
    lines = [f"0,{'>=' * out}{sold}" for sold, out in draw_sales(300, 1)]
    (tmp_path / "sales.csv").write_text("z,x\n" + "\n".join(lines))
    options = " ".join(f"--option {k}={v}" for k, v in SIZES.items() if k != "horizon")
    words = f"certify inventory {options} --option demand=1 --horizon 4 --log {tmp_path}/sales.csv"
    assert main(words.split()) == 2
    assert "needs --censored" in capsys.readouterr().err
    assert main([*words.split(), "--censored"]) == 0
    assert "(certified)" in capsys.readouterr().out


def test_outcomes_that_are_no_numbers_are_refused():
    with pytest.raises(pkd.ModelError, match="outcomes that are no numbers"):
        pkd.compile(Censored(gambler()))
