"""Logs in the words of a model: what is read, and how everything wrong is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import pkd
from pkd.certification.logs import as_log
from pkd_examples.inventory import DAYS, inventory
from pkd_examples.maintenance import maintenance
from tests.kiosk import Kiosk

MODEL = pkd.compile(inventory().model())
PAIRS = [(day, (day + week) % 4) for week in range(10) for day in range(7)]


def write(path: Path, pairs: Any, header: str = "z,x", separator: str = ",") -> Path:
    """A log file, in UTF-8."""
    lines = [header, *(f"{z}{separator}{x}" for z, x in pairs)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def findings_of(path: Path, model: Any = MODEL) -> tuple[str, ...]:
    """What is wrong with a log, without the folder that it lies in."""
    with pytest.raises(pkd.ModelError) as caught:
        pkd.read_log(path, model)
    return tuple(text.replace(str(path), path.name) for text in caught.value.findings)


class Choices(pkd.PartiallyKnownMDP):
    """One choice between features {z: its outcomes}, or a rest if there are none."""

    horizon = 1

    def __init__(self, features: Mapping[str, Any]) -> None:
        self.features = features

    def start(self) -> Any:
        return (None, None)

    def actions(self, x: Any, y: Any) -> Any:
        return list(self.features) or ["rest"]

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, None, a if a in self.features else pkd.sure(None))]

    def outcomes(self, z: Any) -> Any:
        return self.features[z]

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return 0.0


def refusal_of(z: Any, *names: str) -> str:
    """What is said of a feature z that is none of the names."""
    with pytest.raises(pkd.ModelError) as caught:
        as_log(Choices(dict.fromkeys(names, (0, 1))), [(z, 0)])
    [finding] = caught.value.findings
    return finding.removeprefix(f"the log, pair 1: {z!r} is no feature of the model; ")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "log.csv"


# -- logs that are right ---------------------------------------------------------------------------


def test_a_log_counts_what_followed_each_feature(file: Path) -> None:
    log = pkd.read_log(write(file, PAIRS), MODEL)
    assert dict(log) == {day: {x: PAIRS.count((day, x)) for x in log[day]} for day in range(7)}
    assert log.samples == dict.fromkeys(range(7), 10.0)
    assert log.unseen == ()


def test_labels_of_features_are_read(file: Path) -> None:
    labelled = [(f"demand on {DAYS[z]}", x) for z, x in PAIRS]
    assert dict(pkd.read_log(write(file, labelled), MODEL)) == dict(as_log(MODEL, PAIRS))


def test_labels_of_outcomes_are_read(file: Path) -> None:
    table = pkd.TabularMDP(
        [[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [1.0]], 3, state_names=["down", "up"]
    )
    log = pkd.read_log(write(file, [("(0, 0)", "up")], "z;x", ";"), table)
    assert dict(log) == {(0, 0): {1: 1.0}}


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("names", [("z", "x"), ("Feature", "Outcome"), ("context", "x'")])
def test_separators_and_names_of_columns_are_found(
    file: Path, separator: str, names: tuple[str, str]
) -> None:
    header = separator.join(["when", *names])
    rows = [(f"noon{separator}{z}", x) for z, x in PAIRS]
    found = pkd.read_log(write(file, rows, header, separator), MODEL)
    assert dict(found) == dict(as_log(MODEL, PAIRS))


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"]
)
def test_encodings_and_byte_order_marks_are_read(file: Path, encoding: str) -> None:
    class Café(Kiosk):
        def feature_label(self, z: Any) -> str:
            return "Café"

    file.write_bytes("z,x\nCafé,1\nCafé,0\n".encode(encoding))
    assert dict(pkd.read_log(file, Café())) == {"demand": {1: 1.0, 0: 1.0}}


def test_a_column_says_how_often(file: Path) -> None:
    file.write_text("count,z,x\n3,demand,1\n0.5,demand,0\n")
    assert dict(pkd.read_log(file, Kiosk())) == {"demand": {1: 3.0, 0: 0.5}}


def test_a_decimal_comma_is_read_where_it_does_not_separate(file: Path) -> None:
    file.write_text("z;x\n('earns', 0);0,25\n")
    assert dict(pkd.read_log(file, maintenance())) == {("earns", 0): {0.25: 1.0}}


def test_the_limits_of_a_reward_belong_to_its_range() -> None:
    earns = ("earns", 0)
    log = as_log(maintenance(), [(earns, 0.0), (earns, 1.0)])
    assert dict(log) == {earns: {0.0: 1.0, 1.0: 1.0}}


def test_whole_numbers_may_be_written_with_a_point(file: Path) -> None:
    found = pkd.read_log(write(file, [(f"{z}.0", f"{x}.0") for z, x in PAIRS]), MODEL)
    assert list(found) == list(range(7))
    assert all(type(z) is int and all(type(x) is int for x in row) for z, row in found.items())


def test_empty_lines_and_blanks_do_not_matter(file: Path) -> None:
    file.write_text(" Z , X \n\n demand , 1 \n , \n")
    assert dict(pkd.read_log(file, Kiosk())) == {"demand": {1: 1.0}}


def test_a_log_that_is_written_is_read_again(file: Path) -> None:
    log = as_log(MODEL, PAIRS)
    log.to_csv(file)
    assert dict(pkd.read_log(file, MODEL)) == dict(log)


def test_a_log_can_stand_wherever_counts_can() -> None:
    log = as_log(MODEL, PAIRS)
    found = [pkd.optimistic_plan(MODEL, c, episodes=9).value for c in (log, log.counts)]
    assert found[0] == found[1]
    assert dict(as_log(MODEL, log.counts)) == dict(log)


def test_features_without_data_are_listed() -> None:
    log = as_log(MODEL, [(0, 3), (2, 1), (0, 1)])
    assert log.unseen == (1, 3, 4, 5, 6)
    assert log.summary().splitlines() == [
        "the log: 3 samples of 2 features (demand on Mon: 2, demand on Wed: 1)",
        ("no samples of demand on Tue, demand on Thu, demand on Fri, demand on Sat, demand on Sun"),
    ]


@pytest.mark.parametrize(("unseen", "rest"), [(11, ""), (12, ""), (13, " and 1 more")])
def test_a_summary_names_twelve_features_and_counts_the_rest(unseen: int, rest: str) -> None:
    model = Choices({f"z{i}": (0, 1) for i in range(1 + unseen)})
    told = as_log(model, [("z0", 0)]).summary().splitlines()[1]
    named = ", ".join(f"z{i}" for i in range(1, 1 + min(unseen, 12)))
    assert told == f"no samples of {named}{rest}"


def test_a_count_of_zero_is_read_and_is_no_sample() -> None:
    log = as_log(Choices({"coin": (0, 1), "die": range(6)}), {"coin": {0: 0}, "die": {5: 2}})
    assert dict(log) == {"coin": {0: 0.0}, "die": {5: 2.0}}
    assert log.unseen == ("coin",)
    assert log.summary() == "the log: 2 samples of 1 feature (die: 2)\nno samples of coin"


def test_a_feature_that_has_one_outcome_needs_no_samples() -> None:
    model = Choices({"seen": (0, 1), "sure": (1,), "coin": (0, 1), "die": range(1, 7)})
    assert as_log(model, [("seen", 0)]).unseen == ("coin", "die")


# -- logs that are wrong ---------------------------------------------------------------------------


def test_weekdays_from_1_to_7_are_refused(file: Path) -> None:
    findings = findings_of(write(file, [(z + 1, x) for z, x in PAIRS]))
    assert findings == (
        (
            "log.csv, lines 8, 15, 22 and 7 more: '7' is no feature of the model; "
            "the nearest is 'demand on Sun' (6)"
        ),
    )


def test_names_of_weekdays_are_refused_with_the_label_that_was_meant(file: Path) -> None:
    findings = findings_of(write(file, [(DAYS[z], x) for z, x in PAIRS]))
    assert findings == tuple(
        f"log.csv, lines {i + 2}, {i + 9}, {i + 16} and 7 more: {day!r} is no feature of the "
        f"model; the nearest is 'demand on {day}' ({i})"
        for i, day in enumerate(DAYS)
    )


def test_an_outcome_that_cannot_follow_is_refused(file: Path) -> None:
    assert findings_of(write(file, [(0, 3), (0, 11), (1, "none")])) == (
        "log.csv, line 3: '11' cannot follow demand on Mon; the nearest is 10",
        (
            "log.csv, line 4: 'none' cannot follow demand on Tue; expected one of 0, 1, 2, 3, 4, "
            "5, 6, 7, 8, 9, 10"
        ),
    )


def test_a_reward_outside_its_range_is_refused(file: Path) -> None:
    rows = [("\"('earns', 0)\"", "0.5"), ("\"('earns', 0)\"", "70"), ("\"('earns', 0)\"", "much")]
    findings = findings_of(write(file, rows), maintenance())
    assert findings == tuple(
        f"log.csv, line {line}: the reward earns at wear 0 is {x!r}; expected a number in [0, 1]"
        for line, x in ((3, "70"), (4, "much"))
    )


def test_a_name_with_two_meanings_is_refused(file: Path) -> None:
    class Twins(Kiosk):
        def x_label(self, x: Any) -> str:
            return str(1 - x)  # the label of one outcome is the value of the other

    findings = findings_of(write(file, [("demand", "1")]), Twins())
    assert findings == (
        (
            "log.csv, line 2: '1' may mean 1 or 0, by value or by label; change the labels, or "
            "give pairs (z, x') in Python"
        ),
    )
    assert dict(as_log(Twins(), [("demand", 1)])) == {"demand": {1: 1.0}}


def test_a_line_without_an_outcome_is_refused(file: Path) -> None:
    file.write_text("z,x\ndemand,1\ndemand\n,1\n")
    assert findings_of(file, Kiosk()) == (
        "log.csv, line 3: there is no outcome",
        "log.csv, line 4: there is no feature",
    )


@pytest.mark.parametrize(
    ("times", "where"),
    [(1, "line 2"), (2, "lines 2, 3"), (3, "lines 2, 3, 4"), (4, "lines 2, 3, 4 and 1 more")],
)
def test_a_finding_names_three_lines_and_counts_the_rest(
    file: Path, times: int, where: str
) -> None:
    [finding] = findings_of(write(file, [("demand", 7)] * times), Kiosk())
    assert finding == f"log.csv, {where}: '7' cannot follow demand; the nearest is 1"


def test_a_count_that_is_no_number_is_refused(file: Path) -> None:
    file.write_text("z,x,count\ndemand,1,two\ndemand,1,-1\n")
    assert findings_of(file, Kiosk()) == (
        "log.csv, line 2: the number of samples is 'two'; expected a number of at least 0",
        "log.csv, line 3: the number of samples is '-1'; expected a number of at least 0",
    )


def test_many_findings_are_counted(file: Path) -> None:
    findings = findings_of(write(file, [(f"day{i}", 0) for i in range(100)]))
    assert len(findings) == 21
    assert findings[-1] == "log.csv: ... and 80 more findings"


@pytest.mark.parametrize("header", ["day,demand", "0,3", "z", ""])
def test_a_file_without_the_two_columns_is_refused(file: Path, header: str) -> None:
    file.write_text(f"{header}\n0,3\n")
    [finding] = findings_of(file)
    columns = header.split(",") if header else []
    assert finding == (
        f"log.csv: expected a first line with the columns z and x, found {columns}; other names "
        "of z are feature, features, context, key, of x x', x_next, next, outcome, value, reward, "
        "result"
    )


def test_a_file_without_samples_is_refused(file: Path) -> None:
    file.write_text("z,x\n")
    assert findings_of(file) == ("log.csv has no samples; expected a pair (z, x') in each line",)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"PK\x03\x04rest", "log.csv is a workbook or a zip archive, not text; save it as CSV"),
        (b"\x1f\x8brest", "log.csv is packed with gzip, not text; save it as CSV"),
        (b"\x89PNG\r\n\x00\x01\x02", "log.csv is not text: utf-16-le fails at byte"),
        (b'z,x\n"demand,1\n', "log.csv, line 2: unexpected end of data; expected CSV"),
    ],
)
def test_a_file_that_is_no_table_is_named_as_what_it_is(file: Path, data: bytes, said: str) -> None:
    file.write_bytes(data)
    [finding] = findings_of(file, Kiosk())
    assert finding.startswith(said)


def test_a_label_that_fails_does_not_stop_a_log() -> None:
    class Broken(Kiosk):
        def feature_label(self, z: Any) -> str:
            raise RuntimeError("no label")

    assert as_log(Broken(), [("demand", 1)]).labels == {"demand": "demand"}


def test_what_cannot_be_a_feature_at_all_is_refused() -> None:
    with pytest.raises(pkd.ModelError, match=r"pair 1: \['demand'\] is no feature of the model"):
        as_log(Kiosk(), [(["demand"], 1)])


def test_a_name_that_contains_what_was_written_comes_before_one_that_only_resembles_it() -> None:
    assert refusal_of("cold", "colt", "a cold, wet and windy day") == (
        "the nearest is 'a cold, wet and windy day'"
    )
    assert refusal_of("Cold", "a cold, wet and windy day", "a cold day") == (
        "the nearest is 'a cold day'"
    )


@pytest.mark.parametrize(
    ("written", "said"),
    [("abcuvwxyz_", "the nearest is 'abc0123456'"), ("abtuvwxyz_", "expected one of 'abc0123456'")],
)
def test_a_name_is_the_nearest_if_three_tenths_of_it_agree(written: str, said: str) -> None:
    assert refusal_of(written, "abc0123456") == said


def test_the_nearest_of_long_names_is_found() -> None:
    """From 200 letters on, the usual comparison of texts skips letters that are frequent."""
    assert refusal_of("!" + "ab" * 120, "ab" * 120) == f"the nearest is {'ab' * 120!r}"


def test_a_model_without_unknown_features_says_so() -> None:
    assert refusal_of("coin") == "it has none that is unknown"
