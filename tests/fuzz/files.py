"""Every reader of files against damaged and forged ones: one ModelError, or an answer that holds.

A reader may take a file whose damage it cannot know of, such as another return of an episode. Then
whatever it gives must still be usable: actions are those of the model, and nothing crashes.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import pkd
import pkd_delay
from pkd.cli import main
from pkd.files.atomic import read_arrays
from pkd_delay.laws.files import read_law, write_law
from pkd_delay.laws.fitting import fit_delay
from tests.fuzz.damage import damage, forge
from tests.queue_strategies import QueueShape, build

__all__ = ["attack"]

DAMAGED = 12  # files of one attack
POLICIES = ("choices", "policy")  # arrays that an engine follows


@attrs.frozen
class Reader:
    """One kind of file: a good one, and a use of what is read from it."""

    path: Path
    use: Callable[[Path], Any]


def attack(seed: int, folder: Path) -> int:
    """Damages some files, and reads them."""
    rng, readers = random.Random(seed), make_readers()
    for number in range(DAMAGED):
        name = rng.choice(sorted(readers))
        reader = readers[name]
        path = folder / f"{number}{reader.path.suffix}"
        shutil.copyfile(reader.path, path)
        forged = path.suffix == ".npz" and rng.random() < 0.6
        others = [other.path for other in readers.values()]
        how = forge(path, rng) if forged else damage(path, rng, others)
        hostile = forged and takes_impossible_actions(path, reader.path)
        try:
            reader.use(path)
        except pkd.ModelError:
            continue
        except Exception as problem:
            said = f"{type(problem).__name__}: {problem}"
            raise AssertionError(f"{name}, {how}: {said}") from problem
        assert not hostile, f"{name}, {how}: actions that do not exist were taken"
    check_other_model(rng, folder)
    check_policy_text(rng, folder)
    return DAMAGED + 2


class Shell(pkd.PartiallyKnownMDP):
    """Any values as x and as actions; only the action at the place of x pays."""

    horizon = 2

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def start(self) -> Any:
        """Any x."""
        return {(x, None): 1 / len(self.values) for x in self.values}

    def actions(self, x: Any, y: Any) -> Any:
        """The same values; None stands for no action."""
        return ["nothing" if v is None else v for v in self.values]

    def reward(self, x: Any, y: Any, a: Any) -> float:
        """1 for the action that is x."""
        return float(a == ("nothing" if x is None else x))

    def step(self, x: Any, y: Any, a: Any) -> Any:
        """Any x again."""
        return [(1.0, None, pkd.Known(dict.fromkeys(self.values, 1 / len(self.values))))]


def check_policy_text(rng: random.Random, folder: Path) -> None:
    """A policy is read back from its CSV file, whatever its values look like."""
    words = [0, "0", None, "None", 1.5, "1.5", "", "-", "a", "b c", b"a", "b'a'", pkd.Queue((0, 0))]
    pairs = [(a, b) for a in words for b in words]
    queues = [pkd.Queue(pair) for pair in pairs]
    values = list(dict.fromkeys(rng.sample([*words, *pairs, *queues], 3) + rng.sample(words, 3)))
    pkd.plan(Shell(values), {}).to_csv(folder / "shell.csv")
    table = pkd.PolicyTable.read(folder / "shell.csv", Shell(values))
    for x in values:
        taken, expected = table(1, x, None), "nothing" if x is None else x
        assert taken == expected, f"{taken!r} in place of {expected!r} of {values!r}"


def takes_impossible_actions(path: Path, good: Path) -> bool:
    """Whether a forged policy has an action beyond the last one that there is."""
    with contextlib.suppress(pkd.ModelError):
        arrays, before = read_arrays(path), read_arrays(good)
        for name in POLICIES:
            if name in arrays and name in before and arrays[name].shape == before[name].shape:
                kind = arrays[name].dtype == before[name].dtype and arrays[name].dtype.kind in "iu"
                if kind and ((arrays[name] < 0) | (arrays[name] >= ACTIONS)).all():
                    return True
    return False


def check_other_model(rng: random.Random, folder: Path) -> None:
    """The file of one model is refused by another, which has more or fewer states or actions."""
    one, other = rng.sample(range(len(make_problems())), 2)
    model, law = make_problems()[one]
    path = folder / "other.npz"
    kind = rng.choice(["run", "plan", "learner"])
    if kind == "run":
        pkd.learn(model, law, 3).save(path)
    elif kind == "plan":
        pkd.plan(model, law).save(path)
    else:
        pkd.OptimisticLearner(model).save(path)
    load: Any = {"run": pkd.Run, "plan": pkd.Plan, "learner": pkd.OptimisticLearner}[kind].load
    try:
        found = load(path, make_problems()[other][0])
    except pkd.ModelError:
        return
    use_policy(found.policy if kind == "run" else found.plan if kind == "learner" else found)
    raise AssertionError(f"the {kind} of another model was taken")


ACTIONS = 3  # of each model below, at most


@cache
def make_problems() -> list[tuple[Any, Any]]:
    """Models that differ in states, actions, steps and kind; two differ in their rewards alone."""
    found = []
    for i, (states, actions, horizon) in enumerate([(3, 2, 3), (4, 3, 4), (3, 2, 5), (3, 2, 3)]):
        rng, large = np.random.default_rng(i), i == 2
        p = rng.dirichlet(np.ones(states), (states, actions))
        mdp = pkd.TabularMDP(p, rng.random((states, actions)), horizon)
        found.append((pkd.compile(mdp.model(), large=large), mdp.law()))
    case = build(QueueShape(5, n_actions=3))
    found.append((pkd.compile(case.model, large=True), case.law))
    return found


@cache
def make_readers() -> dict[str, Reader]:
    """Good files of every kind, made once."""
    folder = Path(tempfile.mkdtemp(prefix="pkd-fuzz-good-"))
    found: dict[str, Reader] = {}
    rules = (pkd.Certified(), pkd.MVP(0.1, 0.01), pkd.PosteriorSampling())
    for i, (model, law) in enumerate(make_problems()):
        rule = rules[i % len(rules)]
        run = pkd.learn(model, law, 8, optimism=rule, checkpoint=folder / f"check{i}.npz")
        run.save(folder / f"run{i}.npz")
        pkd.plan(model, law).save(folder / f"plan{i}.npz")
        pkd.OptimisticLearner(model, 9, optimism=rule).save(folder / f"learner{i}.npz")

        def go_on(path: Path, model: Any = model, law: Any = law, rule: Any = rule) -> Any:
            return pkd.learn(model, law, 8, optimism=rule, checkpoint=path)

        def use_run(path: Path, model: Any = model) -> None:
            use_policy(pkd.Run.load(path, model).policy)
            pkd.Run.load(path).regret.sum()

        def use_plan(path: Path, model: Any = model) -> None:
            use_policy(pkd.Plan.load(path, model))

        def use_learner(path: Path, model: Any = model) -> None:
            use_policy(pkd.OptimisticLearner.load(path, model).plan)

        found[f"check{i}"] = Reader(folder / f"check{i}.npz", go_on)
        found[f"run{i}"] = Reader(folder / f"run{i}.npz", use_run)
        found[f"plan{i}"] = Reader(folder / f"plan{i}.npz", use_plan)
        found[f"learner{i}"] = Reader(folder / f"learner{i}.npz", use_learner)
    return found | _make_delay_readers(folder) | _make_text_readers(folder)


def _make_delay_readers(folder: Path) -> dict[str, Reader]:
    """Tables, policies and laws of delays."""
    rng = np.random.default_rng(1)
    mdp = pkd.TabularMDP(rng.dirichlet(np.ones(2), (2, 2)), rng.random((2, 2)), 3)
    delayed = pkd_delay.DelayedMDP(mdp, {-1: 0.2, 0: 0.5, 1: 0.3}, 2)
    mdp.save_npz(folder / "table.npz")
    plan = pkd_delay.plan(delayed)
    plan.to_csv(folder / "delayed.csv", every_state=True)
    write_law(folder / "law.json", {None: pkd_delay.InterArrival({-1: 0.3, 0: 0.7})}, 2)

    def use_law(path: Path) -> None:
        found = read_law(path)
        assert found.form in ("inter-arrival", "lags", "chain")

    def use_policy_file(path: Path) -> None:
        saved = pkd.PolicyTable.read(path, plan.model)
        for row in plan.core.rows():
            with contextlib.suppress(pkd.ModelError):
                assert saved.action(row.step, *row.state.values()) in (0, 1)

    def use_table(path: Path) -> None:
        table = pkd.TabularMDP.from_npz(path, 3)
        if table.n_states * table.n_actions < 100 and table.horizon < 100:
            assert np.isfinite(pkd.plan(table).value)

    return {
        "table": Reader(folder / "table.npz", use_table),
        "delayed": Reader(folder / "delayed.csv", use_policy_file),
        "law": Reader(folder / "law.json", use_law),
    }


def _make_text_readers(folder: Path) -> dict[str, Reader]:
    """Logs, policies as text, and experiment files."""
    model, law = make_problems()[0]
    plan = pkd.plan(model, law)
    rows = [f"{z};{x};2" for z, row in law.items() for x in row] if hasattr(law, "items") else []
    rows = rows or [f'"{z}";{x};2' for z in model.features for x in range(3)]
    (folder / "log.csv").write_text("z;x;count\n" + "\n".join(rows) + "\n", encoding="utf-8")
    delays = [f"{e},{h},{h},{h + (e + h) % 3}" for e in range(4) for h in range(1, 6)]
    (folder / "delays.csv").write_text(
        "episode,step,sent,shown\n" + "\n".join(delays) + "\n", encoding="utf-8"
    )
    toml = 'model = "gambler"\nhorizon = 3\n[options]\ncapital = 2\n'
    (folder / "experiment.toml").write_text(toml, encoding="utf-8")
    plan.to_csv(folder / "policy.csv", every_state=True)
    plan.to_json(folder / "policy.json", every_state=True)

    def use_table(path: Path) -> None:
        table = pkd.PolicyTable.read(path, model.model)
        for x, y in plan.states(1):
            assert table(1, x, y) in tuple(model.model.actions(x, y))

    def use_config(path: Path) -> None:
        said = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            try:
                code: Any = main(["check", "--config", str(path)])
            except SystemExit as stop:
                code = stop.code
        assert code in (0, 1, 2)
        assert "Traceback" not in said.getvalue()
        assert ".py:" not in said.getvalue(), said.getvalue()

    return {
        "log": Reader(folder / "log.csv", lambda path: pkd.read_log(path, model).summary()),
        "delays": Reader(folder / "delays.csv", lambda path: fit_delay("best", path)),
        "policy csv": Reader(folder / "policy.csv", use_table),
        "policy json": Reader(folder / "policy.json", use_table),
        "experiment": Reader(folder / "experiment.toml", use_config),
    }


def use_policy(plan: Any) -> None:
    """Asks a policy in the first states of each step."""
    if plan is None:
        return
    compiled = plan.compiled
    for h in range(1, compiled.horizon + 1):
        for _, (x, y) in zip(range(3), compiled.decision_states(h), strict=False):
            actions = tuple(compiled.model.actions(x, y))
            assert plan.action(h, x, y) in actions
            assert list(plan.values(h, x, y)) == list(actions)
    json.dumps(plan.value)
