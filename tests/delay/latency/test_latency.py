"""The price of lateness on the command line, against values that are computed apart."""

import csv
import random
from pathlib import Path

import pytest

import pkd
from pkd.cli import main
from pkd_delay import Delayed, DelayedMDP, KnownDelay, Lags
from pkd_delay.latency.curve import DelayCost, Latency, measure, shift_law
from pkd_delay.laws.kernel import InterArrival
from pkd_delay.models.autoscaler import autoscaler
from pkd_delay.models.tables import random_mdp, two_state_chain
from pkd_delay.transforms.blind import Blind
from pkd_delay.transforms.late_actions import LateCommands

CHAIN = two_state_chain()


def read(path):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(rows, name):
    return [float(row[name]) for row in rows if row[name] != ""]


@pytest.fixture
def table(tmp_path):
    """Runs pkd latency and reads its table."""

    def run(*words):
        path = tmp_path / "table.csv"
        assert main(["latency", *words, "--csv", str(path), "--quiet"]) == 0
        return read(path)

    return run


def test_late_actions_have_their_own_curve(table):
    rows = table("two_state_chain", "--late", "actions", "--up-to", "3")
    assert column(rows, "optimal value") == pytest.approx([10, 9.1, 8.46, 8.012])


def test_the_law_of_late_actions_has_a_line(table):
    rows = table("two_state_chain", "--late", "actions", "--action-delay-law", "0:.5,1:.5")
    chain = two_state_chain()
    expected = pkd.plan(LateCommands(chain, Lags({0: 0.5, 1: 0.5})), chain.law()).value
    assert rows[-1]["delay"] == "the law given"
    assert float(rows[-1]["optimal value"]) == pytest.approx(expected)


def test_a_law_is_shifted_tick_by_tick(table):
    rows = table("two_state_chain", "--lags", "0:.5,2:.5", "--shift", "--up-to", "2")
    expected = [
        pkd.plan(DelayedMDP(two_state_chain(), Lags({k: 0.5, k + 2: 0.5})).known(),
                 two_state_chain().law()).value
        for k in range(3)
    ]  # fmt: skip
    assert column(rows, "optimal value") == pytest.approx(expected)
    assert column(rows, "total loss") == pytest.approx([10 - value for value in expected])


def test_a_shifted_law_of_changes_is_the_delay_plus_a_constant():
    law = InterArrival({-1: 0.2, 0: 0.5, 1: 0.3})
    shifted = shift_law(law, 2, 1)
    assert shifted.row(3, 3) == pytest.approx([0.0, *law.row(2, 2)])
    assert shifted.row(0, 3) == pytest.approx([0.0, *law.row(0, 2)])
    same = shift_law(law, 2, 0)
    mdp = random_mdp(states=3, actions=2, horizon=5, successors=2, seed=2)
    values = [pkd.plan(KnownDelay(mdp, one, 2), mdp.law()).value for one in (law, same)]
    assert values[0] == pytest.approx(values[1], abs=1e-12)


def test_the_autoscaler_says_the_sentence_of_the_demo(capsys):
    assert main(["latency", "autoscaler", "--up-to", "1", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "These delays cost 5.1% of it; ignoring them costs 17.7%." in said


def test_a_sensor_is_bought_as_long_as_a_tick_pays(capsys):
    words = ["latency", "autoscaler", "--up-to", "3", "--quiet", "--sensor-price"]
    assert main([*words, "0.5"]) == 0
    assert "no faster sensor pays" not in capsys.readouterr().out
    assert main([*words, "5"]) == 0
    assert "no faster sensor pays: the delay of 3 stays" in capsys.readouterr().out


def test_the_sensor_stops_where_the_net_value_is_largest():
    lines = [DelayCost(0, 10.0), DelayCost(1, 9.9), DelayCost(2, 8.0), DelayCost(3, 7.0)]
    study = Latency("x", "delay", lines, lines[0], sensor_price=0.5)
    assert study.net_values() == pytest.approx([8.5, 8.9, 7.5, 7.0])
    assert study.sentences()[1] == (
        "At 0.5 per tick a faster sensor pays down to a delay of 1: net gain 1.9; "
        "the next tick would gain 0.1."
    )


class TestIgnoring:
    def test_it_is_worth_what_acting_on_the_last_shown_state_is_worth(self):
        delayed = autoscaler()
        model, law = delayed.known(), delayed.law()
        plan = pkd.plan(delayed.base, delayed.base_law)

        def act(h, x, y):
            base_x, base_y, _, _ = model.read(x, y)
            return plan.action(h, base_x, base_y)

        (line,) = measure(delayed, [(0, lambda given: given)])
        assert line.ignoring == pytest.approx(pkd.evaluate(model, law, act))

    def test_it_looks_through_all_that_is_late_or_missing(self):
        plan = pkd.plan(CHAIN)
        inner = LateCommands(pkd.Missing(CHAIN, 0.3, longest=2), Lags({0: 0.5, 1: 0.5}))
        model = KnownDelay(inner, {-1: 0.3, 0: 0.4, 1: 0.3}, 1)

        def act(h, x, y):
            return plan.action(h, model.read(x, y)[0], None)

        blind = pkd.evaluate(model, CHAIN.law(), Blind(model, plan))
        assert blind == pytest.approx(pkd.evaluate(model, CHAIN.law(), act))

    def test_a_model_with_too_many_states_to_follow_gives_no_number(self, monkeypatch):
        monkeypatch.setattr("pkd_delay.latency.curve.MOST_FOLLOWED", 1)
        (line,) = measure(CHAIN, [(0, lambda given: given)])
        assert (line.value, line.ignoring) == (pytest.approx(10.0), None)


class TestCertified:
    def make_log(self, path, n=300):
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["z", "x"])
            rng = random.Random(0)
            rows = [((s, a), s) for s in (0, 1) for a in (0, 1) for _ in range(n)]
            rng.shuffle(rows)
            for z, s in rows:
                writer.writerow([z, s if rng.random() < 0.9 else 1 - s])
        return str(path)

    def test_the_bounds_hold_the_exact_curve(self, table, tmp_path):
        log = self.make_log(tmp_path / "log.csv")
        rows = table("two_state_chain", "--log", log, "--up-to", "2")
        low, high = column(rows, "optimum at least"), column(rows, "optimum at most")
        for value, least, most in zip([10, 9.1, 8.46], low, high, strict=True):
            assert least - 1e-9 <= value <= most + 1e-9
        assert low[2] < high[2]

    def test_the_bounds_are_those_of_certify(self, table, tmp_path):
        log = self.make_log(tmp_path / "log.csv")
        rows = table("two_state_chain", "--log", log, "--up-to", "1", "--delta", "0.1")
        model = Delayed.constant(two_state_chain(), 1).known()
        found = pkd.certify(model, pkd.read_log(log, two_state_chain().model()), delta=0.1)
        assert float(rows[1]["optimum at least"]) == pytest.approx(found.low)
        assert float(rows[1]["optimum at most"]) == pytest.approx(found.high)

    def test_the_table_says_that_it_is_certified(self, tmp_path, capsys):
        log = self.make_log(tmp_path / "log.csv")
        words = ["latency", "two_state_chain", "--log", log, "--up-to", "1", "--quiet"]
        assert main(words) == 0
        said = capsys.readouterr().out
        assert "certified: all of this holds together with probability 0.95, if the" in said

    def test_a_sensor_surely_stops_paying_where_the_next_tick_is_too_cheap(self):
        lines = [
            DelayCost(0, low=9.0, high=9.1),
            DelayCost(1, low=9.0, high=9.1),
            DelayCost(2, low=5.0, high=6.0),
        ]
        study = Latency("x", "delay", lines, lines[0], sensor_price=0.5, delta=0.05)
        assert study.find_paying() == ["surely not", "surely"]
        assert study.sentences()[-1] == (
            "At 0.5 per tick a faster sensor surely pays down to a delay of 1, and no further."
        )

    def test_lines_with_other_sets_of_laws_share_no_event(self):
        lines = [DelayCost(0, low=1.0, high=2.0, evidence=(1,)), DelayCost(1, low=0.0, high=1.5)]
        said, *_ = Latency("x", "delay", lines, lines[0], delta=0.05).sentences()
        assert "together with probability 0.9, each optimum by itself with 0.95" in said

    def test_ignoring_is_bounded_by_the_certificate_of_that_policy(self, table, tmp_path):
        log = self.make_log(tmp_path / "log.csv")
        rows = table("two_state_chain", "--log", log, "--up-to", "2")
        low, high = column(rows, "if ignored, at least"), column(rows, "if ignored, at most")
        chain = two_state_chain()
        for d, (least, most) in enumerate(zip(low, high, strict=True)):
            late = DelayedMDP.constant(chain, d)
            blind = Blind(late.known(), pkd.plan(chain))
            value = pkd.evaluate(late, blind)  # the log and the truth have the same best plan
            found = pkd.certify(late.known(), pkd.read_log(log, chain.model()), policy=blind)
            assert least - 1e-9 <= value <= most + 1e-9
            assert (least, most) == pytest.approx((found.low, found.high))

    @pytest.mark.parametrize(
        ("price", "pays", "said"),
        [
            ("0.001", "surely", "a faster sensor surely pays down to a delay of 0."),
            ("3", "surely not", "surely no faster sensor pays: the delay of 1 stays"),
            ("0.9", "unknown", "the best delay is one of 0, 1; the log leaves it open."),
        ],
    )
    def test_a_log_says_whether_a_sensor_surely_pays(
        self, table, tmp_path, capsys, price, pays, said
    ):
        log = self.make_log(tmp_path / "log.csv", n=2000)
        words = ["two_state_chain", "--log", log, "--up-to", "1", "--sensor-price", price]
        assert table(*words)[1]["a faster sensor pays"] == pays
        assert said in capsys.readouterr().out

    def test_a_saved_run_gives_the_counts(self, table, tmp_path):
        path = tmp_path / "run.npz"
        pkd.learn(two_state_chain(), episodes=200).save(path)
        rows = table("two_state_chain", "--log", str(path), "--up-to", "1")
        assert float(rows[1]["optimum at least"]) <= 9.1 <= float(rows[1]["optimum at most"])


class TestThePicture:
    def test_certified_bounds_have_both_axes(self):
        lines = [
            DelayCost(d, low=9.0 - d, high=10.0 - d, ignoring_bounds=(8.0, 9.0)) for d in range(3)
        ]
        study = Latency("pump", "delay in ticks", lines, lines[0], sensor_price=0.3, delta=0.05)
        values, prices = study.draw().axes
        assert len(prices.patches) == 0  # a bar would look like an amount
        low, high = (line.get_ydata() for line in prices.lines[:2])
        assert (list(low), list(high)) == ([0.0, 0.0], pytest.approx([2.0, 2.0]))
        assert "certified" in values.get_legend().get_texts()[0].get_text()

    def test_each_axis_says_what_it_shows_and_many_ticks_get_no_labels(self):
        for count in (4, 12):
            lines = [DelayCost(d, 10.0 - d, 9.0 - d) for d in range(count + 1)]
            figure = Latency("pump", "delay in ticks", lines, lines[0], sensor_price=0.3).draw()
            values, prices = figure.axes
            assert values.get_ylabel() == "value of an episode"
            assert prices.get_ylabel() == "price of this tick"
            assert prices.get_xlabel() == "delay in ticks"
            assert len(prices.texts) == (count if count == 4 else 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--shift"], "--shift needs a law"),
        (["--late", "actions", "--action-delay", "1"], "goes through all constant delays itself"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(words, said, capsys):
    assert main(["latency", "two_state_chain", *words]) == 2
    assert said in capsys.readouterr().err
