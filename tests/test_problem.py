"""Finding problems by registered name, `module:object`, .npz file and Gymnasium id; what is not
found gets one clear error.
"""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from pkd import problem
from pkd.model import ModelError, PartiallyKnownMDP
from pkd.problem import as_problem, find, parse_options
from pkd.tables.tabular import TabularMDP

BAKERY = '''
from pkd.tables.tabular import TabularMDP

def bakery(horizon=2, loaves=3):
    """One state, one action; every step pays the loaves."""
    return TabularMDP([[[1.0]]], [[float(loaves)]], horizon)

def pair():
    return bakery().model(), bakery().law()

class Shop:
    def __init__(self, horizon=5):
        self.horizon = horizon
    def model(self):
        return bakery(self.horizon).model()
    def law(self):
        return bakery().law()

ready = bakery(4)
alone = ready.model()
number = 7
'''


@pytest.fixture
def bakery_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "bakery_for_tests.py").write_text(BAKERY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "bakery_for_tests", raising=False)
    return "bakery_for_tests"


@pytest.fixture
def registered(bakery_module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`bakery`, and a name whose package is missing, as if packages had registered them."""
    points = [
        EntryPoint("bakery", f"{bakery_module}:bakery", problem.GROUP),
        EntryPoint("gone", "no_such_package:thing", problem.GROUP),
    ]
    monkeypatch.syspath_prepend(".")
    monkeypatch.setattr(
        problem, "entry_points", lambda group: points if group == problem.GROUP else []
    )


def reward_of(found: problem.Found) -> Any:
    return found.model.reward(0, None, 0)


@pytest.mark.parametrize("name", problem.names())
def test_every_registered_name_is_a_problem_with_its_law(name: str) -> None:
    found = find(name)
    assert found.model.horizon >= 1
    assert found.law is not None


def test_the_shipped_packages_have_registered_their_problems() -> None:
    assert {"autoscaler", "inventory"} <= problem.names().keys()


@pytest.mark.usefixtures("registered")
def test_a_registered_name_is_called_with_the_options() -> None:
    found = find("bakery", {"loaves": 8}, horizon=6)
    assert (reward_of(found), found.model.horizon) == (8.0, 6)


@pytest.mark.usefixtures("registered")
def test_a_name_with_a_typing_slip_gets_a_suggestion() -> None:
    with pytest.raises(
        ModelError,
        match=(
            r"^no model is called 'bakry'; did you mean 'bakery'\? Expected a name \(bakery, "
            r"gone\), module:object"
        ),
    ):
        find("bakry")


@pytest.mark.usefixtures("registered")
def test_a_registered_name_whose_package_is_gone_says_so() -> None:
    with pytest.raises(
        ModelError, match=r"^gone cannot be imported: No module named 'no_such_package'$"
    ):
        find("gone")


def test_an_entry_point_of_a_broken_package_names_the_package_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a module was renamed and its package was not installed again."""
    info = tmp_path / "kiln-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: kiln\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[pkd.facts]\nkiln = kiln_that_moved:facts\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModelError) as caught:
        problem.installed("pkd.facts")
    assert str(caught.value) == (
        "kiln cannot be imported: No module named 'kiln_that_moved'. The package kiln registers it "
        "in pkd.facts: install kiln again, or remove it with pip uninstall kiln"
    )


def test_a_module_of_the_current_folder_is_found(bakery_module: str) -> None:
    assert reward_of(find(f"{bakery_module}:ready")) == 3.0


def test_a_pair_of_model_and_law_is_a_problem(bakery_module: str) -> None:
    assert find(f"{bakery_module}:pair").with_law()[0, 0] == {0: 1.0}  # type: ignore[index]


def test_a_class_is_called_before_it_is_asked_for_its_model(bakery_module: str) -> None:
    assert find(f"{bakery_module}:Shop", horizon=9).model.horizon == 9


def test_a_model_alone_has_no_law(bakery_module: str) -> None:
    found = find(f"{bakery_module}:alone")
    assert isinstance(found.model, PartiallyKnownMDP)
    with pytest.raises(ModelError, match=r":alone is a model without a law; give an object with"):
        found.with_law()


FORMS = "an object with .model() and .law(), a pair (model, law)"
OWN = "ready made and has its own horizon; name a callable that takes one"
GONE = "cannot be imported: module 'bakery_for_tests' has no attribute 'nothing'"
WRONG = "got an unexpected keyword argument 'cakes'; its options are horizon=2, loaves=3"


@pytest.mark.parametrize(
    ("thing", "options", "horizon", "message"),
    [
        ("number", {}, None, f"number: expected {FORMS} or a model, found int"),
        ("bakery", {"cakes": 1}, None, f"bakery: {WRONG}"),
        ("ready", {"loaves": 1}, None, "ready has no option loaves: it is ready made"),
        ("ready", {}, 3, f"ready is {OWN}"),
        ("nothing", {}, None, f"nothing {GONE}"),
    ],
)
def test_what_is_no_problem_gets_one_clear_error(
    bakery_module: str, thing: str, options: Any, horizon: Any, message: str
) -> None:
    with pytest.raises(ModelError) as error:
        find(f"{bakery_module}:{thing}", options, horizon)
    assert str(error.value) == f"{bakery_module}:{message}"


def test_a_word_with_an_empty_module_is_refused() -> None:
    with pytest.raises(
        ModelError, match=r"^':ready': expected module:object, such as my_models:bakery$"
    ):
        find(":ready")


def test_an_npz_file_is_a_problem(tmp_path: Path) -> None:
    TabularMDP([[[1.0]]], [[2.5]], 3).save_npz(tmp_path / "one.npz")
    assert reward_of(find(str(tmp_path / "one.npz"))) == 2.5
    assert find(str(tmp_path / "one.npz"), horizon=8).model.horizon == 8


def test_an_npz_file_takes_no_options(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no\.npz has no option size: an \.npz file takes none$"):
        find(str(tmp_path / "no.npz"), {"size": 3})


def test_a_gymnasium_id_is_made_with_the_options() -> None:
    found = find("FrozenLake-v1", {"is_slippery": False}, horizon=6)
    assert found.with_law()[0, 2] == {1: 1.0}  # type: ignore[index]


def test_an_unknown_gymnasium_id_gets_one_clear_error() -> None:
    with pytest.raises(ModelError, match=r"^Gymnasium cannot make FrozenLak-v1: .*FrozenLak"):
        find("FrozenLak-v1")


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("3", 3),
        ("-1.5", -1.5),
        ("1e3", 1000.0),
        ("True", True),
        ("false", False),
        ("None", None),
        ("1,2", (1, 2)),
        ("4x4", "4x4"),
        ("", ""),
    ],
)
def test_an_option_is_read_as_what_it_looks_like(word: str, value: Any) -> None:
    assert parse_options([f"key={word}"]) == {"key": value}


@pytest.mark.parametrize("word", ["lonely", "=3", "two words=1"])
def test_an_option_without_a_key_is_refused(word: str) -> None:
    with pytest.raises(ModelError, match=r": expected key=value, such as lead_time=2$"):
        parse_options([word])


def test_a_transform_makes_another_problem_of_what_was_found(bakery_module: str) -> None:
    dearer = TabularMDP([[[1.0]]], [[9.0]], 2)
    assert reward_of(find(f"{bakery_module}:bakery", transform=lambda found: dearer)) == 9.0


def test_a_transform_gets_a_pair_as_a_problem(bakery_module: str) -> None:
    seen: list[problem.Problem] = []
    find(f"{bakery_module}:pair", transform=lambda found: seen.append(found) or found)  # type: ignore[func-returns-value]
    assert reward_of(problem.Found("", seen[0].model(), seen[0].law())) == 3.0


def test_a_model_alone_stays_without_a_law_when_it_is_transformed(bakery_module: str) -> None:
    found = find(
        f"{bakery_module}:alone", transform=lambda found: TabularMDP([[[1.0]]], [[9.0]], 2)
    )
    assert (reward_of(found), found.law) == (9.0, None)


@pytest.mark.usefixtures("registered")
def test_what_is_installed_in_a_group_is_loaded_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("double", "operator:neg", "pkd.things"),
        EntryPoint("absolute", "operator:abs", "pkd.things"),
    ]
    monkeypatch.setattr(
        problem, "entry_points", lambda group: points if group == "pkd.things" else []
    )
    assert {name: thing(-2) for name, thing in problem.installed("pkd.things").items()} == {
        "absolute": 2,
        "double": 2,
    }


def three_loaves(horizon: int = 2) -> TabularMDP:
    """One state, one action; every step pays 3."""
    return TabularMDP([[[1.0]]], [[3.0]], horizon)


def test_an_object_with_model_and_law_is_a_problem_as_it_is() -> None:
    table = three_loaves()
    assert as_problem(table) is table


def test_a_pair_becomes_a_problem_with_these_two_halves() -> None:
    model, law = three_loaves().model(), {(0, 0): {0: 1.0}}
    made = as_problem((model, law))
    assert (made.model(), made.law()) == (model, law)


@pytest.mark.usefixtures("registered")
def test_a_registered_name_becomes_its_problem() -> None:
    made = as_problem("bakery")
    assert made.model().reward(0, None, 0) == 3.0
    assert made.law()[0, 0] == {0: 1.0}  # type: ignore[index]


def test_a_name_of_a_model_alone_is_no_problem(bakery_module: str) -> None:
    with pytest.raises(ModelError, match=r":alone is a model without a law; give an object"):
        as_problem(f"{bakery_module}:alone")


WANTED = f"{FORMS} or a registered name"
ALONE, CLASS = "is a model without a law", "is the class TabularMDP"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (three_loaves().model(), f" {ALONE}; expected {WANTED}"),
        (TabularMDP, f" {CLASS}; expected {WANTED}: call it first, TabularMDP(...)"),
        (7, f": expected {WANTED}, found int"),
        (None, f": expected {WANTED}, found NoneType"),
        ((7, {}), f": expected {WANTED}, found tuple"),
        ((three_loaves().model(), {}, 3), f": expected {WANTED}, found tuple"),
    ],
)
def test_what_is_no_problem_is_refused_when_it_is_given(given: Any, message: str) -> None:
    with pytest.raises(ModelError) as error:
        as_problem(given)
    assert str(error.value) == f"the problem{message}"


def test_a_class_that_does_not_say_its_options_is_refused() -> None:
    with pytest.raises(ModelError, match="builtins:dict does not say its options"):
        find("builtins:dict")
