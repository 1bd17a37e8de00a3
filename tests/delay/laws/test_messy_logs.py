"""Logs as production writes them: each mess alone is mended, counted and said."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import pkd
from benchmarks.messy_log import LAW, LOSS, MESSES, make_rows, write_log
from pkd.cli import main
from pkd_delay import DelayChain, Lags
from pkd_delay.laws.estimation import bound_loss
from pkd_delay.laws.fitting import fit_delay
from pkd_delay.laws.logs import Loss, ask_questions, read_log
from pkd_delay.laws.times import read_times

ROWS = 4000


@pytest.mark.parametrize("mess", [*MESSES, "all of them"])
def test_a_log_with_one_mess_gives_the_law_and_the_rate_of_loss(mess):
    messes = set(MESSES if mess == "all of them" else [mess])
    rows = make_rows(seed=1, n=ROWS, messes=messes)
    fit = fit_delay("best", rows, max_delay=3)
    assert fit.contains(LAW)
    assert fit.holds, str(fit)
    assert fit.best_form == "lags"
    loss = fit.log.loss
    assert loss.outages == ((ROWS // 25,) if "outage" in messes else ())
    low, high = bound_loss(loss.single, loss.kept, 0.05)
    assert (low <= LOSS <= high) if messes & {"blanks", "gaps"} else loss.single == 0
    text = str(fit)
    assert ("duplicate rows left out" in text) == ("duplicates" in messes)
    assert ("rows out of order in the log" in text) == ("shuffled" in messes)
    assert "one tick is 10 s, the spacing of `sent`" in text


def test_what_is_missing_is_counted_exactly():
    rows = make_rows(seed=2, n=ROWS, messes={"blanks", "gaps"})
    tail = 3  # states whose largest delay has not passed by the end
    lost = sum(row["shown"] is None for row in rows[:-tail]) + ROWS - len(rows)
    assert read_log(rows, max_delay=3).loss.lost == lost


def test_duplicates_and_rows_out_of_order_are_counted_exactly():
    rows = [{"sent": t, "shown": t} for t in (0, 1, 2, 4, 3, 5, 5, 5, 6)]
    rows[6]["shown"] = 6  # sent twice: the first one counts
    rows = [{"step": row["sent"], **row} for row in rows]
    log = read_log(rows)
    assert log.notes == (
        "2 duplicate rows left out, 1 with other times (the earliest count)",
        "1 rows out of order in the log, sorted by step",
    )
    assert [one.delay for one in log.samples] == [0] * 6


def test_one_blank_is_one_lost_state_and_not_a_long_delay(tmp_path):
    clean = make_rows(seed=3, n=ROWS, messes=())
    rows = [dict(row) for row in clean]
    rows[100]["shown"] = None
    fit = fit_delay(Lags, rows)
    assert fit.max_delay == fit_delay(Lags, clean).max_delay == 3
    assert fit.log.loss.single == 1
    assert fit.log.censored == 0


def test_a_blank_at_the_end_of_an_episode_is_a_late_state():
    rows = [
        {"episode": e, "step": t, "sent": t, "shown": t + d if t + d <= 3 else None, "end": 3}
        for e, delays in enumerate([(0, 0, 0), (0, 1, 2), (0, 0, 1)])
        for t, d in enumerate(delays, start=1)
    ]
    log = read_log(rows)
    assert log.loss.lost == 0
    found = [(one.before, one.delay, one.censored) for one in log.samples]
    assert found == [
        (0, 0, False), (0, 0, False), (0, 1, False), (1, 1, True), (0, 0, False), (0, 1, True),
    ]  # fmt: skip


class TestLosses:
    """A loss that does not look at the delay of its state leaves every question unbiased."""

    LAWS = (Lags((0.5, 0.3, 0.2)), DelayChain([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0, 0.5, 0.5]]))
    # A second episode with a loss in the middle: the log is one that loses states.
    PROBE = tuple(
        {"episode": "probe", "step": t, "sent": t, "shown": None if t == 2 else t}
        for t in range(1, 8)
    )

    def find_bias(self, law, lose, largest=2, horizon=5):
        """E[yes - hazard asked] over all delays and all patterns of losses, exactly."""
        bias: Counter[tuple[int, int]] = Counter()
        for delays in itertools.product(range(largest + 1), repeat=horizon):
            p, before = 1.0, 0
            for delay in delays:
                p *= law.row(before, largest)[delay]
                before = delay
            if p == 0.0:
                continue
            chances = [lose(b, d) for b, d in itertools.pairwise((0, *delays))]
            for lost in itertools.product((False, True), repeat=horizon):
                q = p * np.prod([c if x else 1 - c for c, x in zip(chances, lost, strict=True)])
                rows = [
                    {
                        "episode": "own", "step": t, "sent": t,
                        "shown": None if lost[t - 1] or t + d > horizon else t + d,
                    }
                    for t, d in enumerate(delays, start=1)
                ]  # fmt: skip
                for sample in read_log([*rows, *self.PROBE], 1.0, largest).samples:
                    if sample.episode == "own":
                        for (b, k), yes in ask_questions(sample, largest):
                            bias[b, k] += q * (yes - law.arrival(b, k))
        assert bias
        return max(map(abs, bias.values()))

    @pytest.mark.parametrize("law", LAWS, ids=["lags", "chain"])
    @pytest.mark.parametrize(
        "lose", [lambda b, d: 0.3, lambda b, d: 0.1 + 0.3 * b], ids=["alike", "by the past"]
    )
    def test_a_loss_by_the_past_alone_is_harmless(self, law, lose):
        assert self.find_bias(law, lose) < 1e-12

    @pytest.mark.parametrize("law", LAWS, ids=["lags", "chain"])
    def test_a_loss_of_late_states_is_a_bias(self, law):
        assert self.find_bias(law, lambda b, d: 0.3 * (d == 2)) > 1e-3

    def test_losses_that_follow_the_delay_before_are_found(self):
        rng = np.random.default_rng(0)
        rows = make_rows(seed=4, n=ROWS, messes=())
        delays = [row["shown"] for row in rows]
        for t in range(1, ROWS):
            late = float(delays[t - 1]) - float(rows[t - 1]["sent"]) > 15
            if late and rng.random() < 0.2:
                rows[t]["shown"] = None
        (test,) = [one for one in fit_delay(Lags, rows, max_delay=3).tests if one.what == "loss"]
        assert not test.holds
        assert "a state was lost in" in test.detail

    def test_an_outage_does_not_count_as_single_losses(self):
        assert Loss.count([1] * 100 + [2] + [500], kept=9898) == Loss(9898, 102, (500,))
        assert Loss.count([1, 2, 1], kept=10) == Loss(10, 4)


class TestTimes:
    def test_units_and_zones_are_one_time(self):
        second = 1_700_000_000.25
        cells = [
            "1700000000.25", second, 1_700_000_000_250, "1700000000250000",
            1_700_000_000_250_000_000,
            "2023-11-14T22:13:20.25Z", "2023-11-14 23:13:20.250+01:00",
            "2023-11-15T03:43:20.250000+05:30", pd.Timestamp(1_700_000_000_250_000_000, tz="UTC"),
        ]  # fmt: skip
        findings: list[tuple[int, str]] = []
        found = read_times({"sent": [1_700_000_000, *cells]}, findings)
        assert found.columns["sent"].tolist() == [0.0] + [0.25] * len(cells)
        assert not findings

    def test_counters_of_any_size_stay_numbers(self):
        cells = [3.2e8 + 250e6 * t for t in range(40)]  # nanoseconds since the machine started
        found = read_times({"sent": cells}, [])
        assert found.columns["sent"].tolist() == cells
        assert not found.absolute

    def test_zones_must_be_told_by_all_or_by_none(self):
        rows = [{"sent": f"2026-05-01T10:00:0{t}+02:00", "shown": ""} for t in range(4)]
        rows[2]["sent"] = "2026-05-01T10:00:02"
        with pytest.raises(pkd.ModelError, match=r"row 3: sent is 2026.* has no time zone"):
            read_log(rows)

    def test_a_time_that_is_none_is_refused_with_its_line(self, tmp_path):
        path = tmp_path / "log.csv"
        path.write_text("sent,shown\n1700000000,1700000001\n12,1700000003\nnoon,1700000004\n")
        with pytest.raises(pkd.ModelError) as caught:
            read_log(path)
        assert "line 3: sent is 12; expected a time like the others" in str(caught.value)
        assert "line 4: sent is 'noon'" in str(caught.value)

    def test_ties_below_a_microsecond_are_in_order(self):
        rows = make_rows(seed=5, n=ROWS, messes={"jitter"})
        assert read_log(rows).out_of_order == ()
        rows[50]["shown"] = f"{float(rows[60]['shown']) + 1:.6f}"
        assert len(read_log(rows).out_of_order) > 1

    def test_a_forgotten_tick_is_found_in_the_spacing(self, tmp_path, capsys):
        path = tmp_path / "log.csv"
        lines = [f"{t},{1700000000000 + 200 * t},{1700000000090 + 200 * t}" for t in range(300)]
        path.write_text("step,sent,shown\n" + "\n".join(lines) + "\n")
        assert main(["fit-delay", str(path), "--max-delay", "1"]) == 0
        printed = capsys.readouterr().out
        assert "one tick is 200 ms, the spacing of `sent`" in printed
        assert "always 1 ticks late" in printed
        assert len(printed.splitlines()) < 40

    def test_a_tick_that_cannot_be_is_refused_with_the_right_one(self):
        rows = make_rows(seed=6, n=50, messes=())
        with pytest.raises(pkd.ModelError, match=r"sent 10 ticks apart.*expected 10 s"):
            read_log(rows, "1s")
        assert read_log(rows, "10s").samples == read_log(rows, 10.0).samples

    @pytest.mark.parametrize("tick", ["10 fortnights", "-1s", "0", ""])
    def test_a_word_that_is_no_tick_is_refused(self, tick):
        with pytest.raises(pkd.ModelError, match="expected a number > 0, or a time such as"):
            read_log(make_rows(seed=6, n=50, messes=()), tick)


class TestTheCut:
    """An outage whose states are all delivered at its end: delays of up to 80 ticks."""

    @pytest.fixture
    def rows(self):
        rows = make_rows(seed=7, n=ROWS, messes=())
        for t in range(1000, 1080):
            rows[t] = {**rows[t], "shown": max(rows[1080]["sent"], rows[t]["shown"])}
        return rows

    def test_a_long_tail_is_refused_with_a_cut_that_keeps_nearly_all(self, rows):
        """The delays 80, 79, ..., 1: the longest 1% of 3,999, 39 of them, are above 41."""
        with pytest.raises(pkd.ModelError, match=r"--max-delay 41 cuts 39 of 3999 delays"):
            fit_delay("best", rows)

    def test_the_cut_says_its_mass_and_keeps_the_law(self, rows):
        fit = fit_delay("best", rows, max_delay=3)
        later = 80 - 3
        mass = f"{later / ROWS:.3g}"
        (said,) = [note for note in fit.log.notes if "cuts" in note]
        assert said == (
            f"max_delay 3 cuts {later} of {ROWS} delays ({mass} of the mass), which were up to 80"
        )
        assert fit.contains(LAW)
        assert fit.best_form == "lags"

    def test_any_log_fits_a_screen(self, tmp_path, capsys):
        rng = np.random.default_rng(0)
        lines = [f"{t},{t},{t + int(d)}" for t, d in enumerate(rng.integers(0, 60, 2000))]
        path = tmp_path / "log.csv"
        path.write_text("step,sent,shown\n" + "\n".join(lines) + "\n")
        main(["fit-delay", str(path), "--form", "chain"])
        printed = capsys.readouterr().out.splitlines()
        assert len(printed) <= 60
        assert max(map(len, printed)) <= 300


class Foreign:
    """A frame of a library that nobody here knows, with the interchange protocol."""

    def __init__(self, frame):
        self.frame = frame

    def __dataframe__(self, *args, **keywords):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.frame.__dataframe__(*args, **keywords)


@pytest.mark.parametrize("wrap", [lambda frame: frame, Foreign], ids=["pandas", "interchange"])
class TestFrames:
    def test_a_frame_says_what_its_file_says(self, wrap, tmp_path):
        path = write_log(tmp_path / "log.csv", 8, n=500)
        frame = pd.DataFrame(make_rows(8, 500)).astype({"sent": str})
        frame["shown"] = frame["shown"].astype(str)
        by_frame, by_file = read_log(wrap(frame), "10s"), read_log(path, "10s")
        assert by_frame == by_file

    def test_dates_and_floats_for_whole_numbers_are_read(self, wrap):
        sent = pd.date_range("2026-05-01", periods=8, freq="10s", tz="UTC")
        shown = sent + pd.to_timedelta([0, 10, 20, 0, 0, 0, 0, 0], "s")
        frame = pd.DataFrame({"step": np.arange(8.0), "sent": sent, "shown": shown})
        frame.loc[4, "shown"] = pd.NaT
        log = read_log(wrap(frame))
        assert log.loss.lost == 1
        assert [one.delay for one in log.samples] == [1, 2, 1]

    def test_samples_of_a_model_are_read(self, wrap):
        frame = pd.DataFrame({"z": ["coin"] * 3, "x": ["heads", "tails", "tails"]})
        assert dict(pkd.read_log(wrap(frame), "gambler")) == {"coin": {"heads": 1, "tails": 2}}
        assert pkd.fit_law("gambler", wrap(frame))("coin")["tails"] == pytest.approx(2 / 3)
