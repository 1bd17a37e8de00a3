"""Every public function answers a wrong argument with one ModelError that names the argument.

`CALLS` has a good call of each public name, and of the methods that users call. Each argument is
then replaced by everything in `JUNK` that `TAKES` does not allow. A public name that is neither in
`CALLS` nor in `ELSEWHERE` is a failure. A missing argument is Python's own TypeError.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import pkd
import pkd_delay
from pkd.rules import as_rule
from pkd.tables.coin import coin
from pkd_delay import hard
from pkd_delay.envs.drive import drive, play
from pkd_delay.episodes import simulate
from pkd_delay.laws.fitting import fit_delay
from pkd_delay.long.plan import plan_long
from pkd_delay.models.tables import two_state_chain
from pkd_delay.transforms.late_actions import LateCommands

pd = pytest.importorskip("pandas")

CHAIN = two_state_chain(horizon=3)
LATE = pkd_delay.DelayedMDP.constant(CHAIN, 1)
COUNTS: dict[Any, dict[Any, float]] = {(0, 0): {0: 5, 1: 5}}
PLAN = pkd.plan(coin)
RUN = pkd.learn(coin, 3)
RESULTS = pkd.compare({"coin": coin}, ["greedy"], 5, 2)
LATE_PLAN = pkd_delay.plan(LATE)
BOUNDED = plan_long(LATE, 0.01)
LOG = [{"episode": 1, "step": t, "sent": t, "shown": t + t % 2} for t in range(9)]
with warnings.catch_warnings(action="ignore"):
    DDP = coin.to_quantecon()
CERTIFICATE = pkd.certify(coin, COUNTS)


class Anything:
    """A class that can be called with anything, as a function can."""

    def __init__(self, *given: Any) -> None:
        self.given = given


JUNK: dict[str, Any] = {
    "nothing": None, "a flag": True, "a word": "nonsense", "bytes": b"x",
    "NaN": math.nan, "infinity": math.inf, "-1": -1, "0": 0, "0.5": 0.5, "2.5": 2.5,
    "huge": 10**400, "tiny": 5e-324,
    "a list": [1, "a", (2,)], "no list": [], "a dict": {"a": 1}, "a tuple": (np.float64(1), 2),
    "an array": np.array([0.5, 0.25]), "an array of NaN": np.full(2, np.nan),
    "a generator": np.random.default_rng(1), "a frame": pd.DataFrame({"z": [1], "x": [2]}),
    "a class": Anything, "a function": lambda *given: None, "an object": object(),
}  # fmt: skip


def make_learner() -> pkd.OptimisticLearner:
    return pkd.OptimisticLearner(coin)


def reset_late(**late: Any) -> pkd_delay.LateEnv:
    env = pkd_delay.LateEnv(CHAIN, **({"observations": 1} | late))
    env.reset(seed=0)
    return env


Call = tuple[Callable[..., Any], dict[str, Any]]
PROBLEM: dict[str, Any] = {"model": coin.model(), "law": coin.law()}
POLICY = {"policy": PLAN}


def call(function: Callable[..., Any], **good: Any) -> Call:
    """A good call."""
    return function, good


# fmt: off
CALLS: dict[str, Call] = {
    # models
    "pkd.TabularMDP": call(pkd.TabularMDP, transitions=[[[1.0]]], rewards=[[1.0]], horizon=2,
        start=0, state_names=["a"], action_names=["b"], discount=0.5),
    "pkd.TabularMDP.model": call(coin.model, branching=2, support=False),
    "pkd.TabularMDP.from_gymnasium": call(pkd.TabularMDP.from_gymnasium, env="FrozenLake-v1",
        horizon=2),
    "pkd.TabularMDP.from_npz": call(pkd.TabularMDP.from_npz, path="table.npz", horizon=2),
    "pkd.TabularMDP.from_function": call(pkd.TabularMDP.from_function, step=lambda s, a: [(1.0, s,
        0.0)], actions=[0], start=0, horizon=2),
    "pkd.TabularMDP.from_trajectories": call(pkd.TabularMDP.from_trajectories, trajectories=[[(0,
        0, 1.0, 0)]], horizon=1),
    "pkd.TabularMDP.from_networkx": call(pkd.TabularMDP.from_networkx, graph=coin.to_networkx(),
        horizon=2, start=0),
    "pkd.TabularMDP.from_quantecon": call(pkd.TabularMDP.from_quantecon, ddp=DDP,
        horizon=2, start=0),
    "pkd.TabularMDP.save_npz": call(coin.save_npz, path="out.npz"),
    "pkd.TabularMDP.to_drn": call(coin.to_drn, path="out.drn"),
    "pkd.TabularMDP.to_prism": call(coin.to_prism, path="out.prism"),
    "pkd.TabularMDP.to_pomdp": call(coin.to_pomdp, path="out.pomdp"),
    "pkd.UnknownTable": call(pkd.UnknownTable, n_states=2, n_actions=2, horizon=2,
        successors=lambda s, a: [0], reward_range=(0.0, 1.0), start=0),
    "pkd.LateActions": call(pkd.LateActions, base=coin, law=1, first_action=0, commands=[0, 1],
        instead=lambda x, y, a: 0),
    "pkd.Missing": call(pkd.Missing, base=coin, probability=0.5, longest=1, commands=[0, 1],
        instead=lambda x, y, a: 0),
    "pkd.discounted": call(pkd.discounted, given=coin, discount=0.5),
    "pkd.as_problem": call(pkd.as_problem, given=coin),
    "pkd.flatten": call(pkd.flatten, **PROBLEM),
    "pkd.compile": call(pkd.compile, model=coin, max_states=99, large=False),
    "pkd.check_model": call(pkd.check_model, **PROBLEM, truth=None, max_states=99),
    "pkd.check_samples": call(pkd.check_samples, model=coin, episodes=PLAN.simulate(3),
        false_alarm=0.1),
    "pkd.Known": call(pkd.Known, law={0: 1.0}),
    "pkd.Queue": call(pkd.Queue, entries=(1,)),
    "pkd.Queue.pop": call(pkd.Queue((1,)).pop, count=1),
    # planning
    "pkd.plan": call(pkd.plan, **PROBLEM, max_states=99),
    "pkd.optimistic_plan": call(pkd.optimistic_plan, model=coin, counts=COUNTS, episodes=9,
        delta=0.1, optimism=pkd.MVP(), seed=0),
    "pkd.evaluate": call(pkd.evaluate, **PROBLEM, **POLICY),
    "pkd.Evaluation.returns": call(PLAN.evaluate().returns, tolerance=0.0, max_values=9),
    "pkd.simulate": call(pkd.simulate, model=coin, **POLICY, episodes=1, seed=0),
    "pkd.Simulator": call(pkd.Simulator, **PROBLEM, seed=0),
    "pkd.Simulator.play": call(pkd.Simulator(coin).play, **POLICY, episodes=1),
    "pkd.Simulator.returns": call(pkd.Simulator(coin).returns, **POLICY, episodes=1),
    "pkd.Simulator.episode": call(pkd.Simulator(coin).episode, **POLICY),
    "pkd.Plan.action": call(PLAN.action, h=1, x=0, y=None),
    "pkd.Plan.values": call(PLAN.values, h=1, x=0, y=None),
    "pkd.Plan.states": call(lambda h: list(PLAN.states(h)), h=1),
    "pkd.Plan.rows": call(lambda step: list(PLAN.rows(step)), step=1),
    "pkd.Plan.table": call(PLAN.table, step=1, most=3),
    "pkd.Plan.stationary": call(PLAN.stationary, season=1),
    "pkd.Plan.simulate": call(PLAN.simulate, episodes=1, seed=0, law=coin.law()),
    "pkd.Plan.evaluate": call(PLAN.evaluate, law=coin.law()),
    "pkd.Plan.save": call(PLAN.save, path="out.npz"),
    "pkd.Plan.to_csv": call(PLAN.to_csv, path="out.csv"),
    "pkd.Plan.to_json": call(PLAN.to_json, path="out.json"),
    "pkd.Plan.load": call(pkd.Plan.load, path="plan.npz", model=coin),
    "pkd.Plan.plot": call(PLAN.plot, ax=None),
    "pkd.PolicyTable.read": call(pkd.PolicyTable.read, path="plan.csv", model=coin),
    # learning
    "pkd.learn": call(pkd.learn, **PROBLEM, episodes=2, optimism=pkd.Certified(), delta=0.1,
        seed=0, replan="every", until=9.0, counts=COUNTS, checkpoint=None, optimal_value=1.0),
    "pkd.OptimisticLearner": call(pkd.OptimisticLearner, model=coin, episodes=2,
        optimism=pkd.Certified(), delta=0.1, seed=0, replan="every", counts=COUNTS),
    "pkd.OptimisticLearner.act": call(make_learner().act, h=1, x=0, y=None),
    "pkd.OptimisticLearner.observe": call(make_learner().observe, episode=PLAN.simulate(1)[0]),
    "pkd.OptimisticLearner.check": call(make_learner().check, episode=PLAN.simulate(1)[0]),
    "pkd.OptimisticLearner.save": call(make_learner().save, path="out.npz"),
    "pkd.OptimisticLearner.load": call(pkd.OptimisticLearner.load, path="learner.npz", model=coin),
    "pkd.drive": call(pkd.drive, env=gym.make("FrozenLake-v1"),
        learner=pkd.OptimisticLearner(pkd.UnknownTable(16, 4, 100)), episodes=1, seed=0,
        save=None),
    "pkd.Run.load": call(pkd.Run.load, path="run.npz", model=coin),
    "pkd.Run.save": call(RUN.save, path="out.npz"),
    "pkd.Run.episodes_to": call(RUN.episodes_to, share=0.5, baseline=0.0),
    "pkd.Run.plot": call(RUN.plot, ax=None),
    "pkd.Run.differences": call(RUN.differences, other=RUN),
    # evidence
    "pkd.certify": call(pkd.certify, model=coin, counts=COUNTS, **POLICY, delta=0.1),
    "pkd.Certificate.table": call(CERTIFICATE.table, most=3),
    "pkd.Certificate.more_samples": call(CERTIFICATE.more_samples, share=0.5),
    "pkd.exploration": call(pkd.exploration, **PROBLEM),
    "pkd.fit_law": call(pkd.fit_law, model=coin, log=COUNTS, smoothing=0.0),
    "pkd.read_log": call(pkd.read_log, log="log.csv", model="gambler"),
    # rules
    "pkd.MVP": call(pkd.MVP, c1=1.0, c2=1.0, log_factor=1.0, monotone=False),
    "pkd.Hoeffding": call(pkd.Hoeffding, c=1.0, log_factor=1.0),
    "pkd.Certified": call(pkd.Certified, minimax=True, exact=False),
    "pkd.PosteriorSampling": call(pkd.PosteriorSampling, prior=1.0),
    "pkd.Replan": call(pkd.Replan, features=2.0, growth=2.0, period=1),
    # experiments
    "pkd.compare": call(pkd.compare, model=coin, agents=["greedy"], episodes=2, seeds=1),
    "pkd.experiment": call(pkd.experiment, models=coin, agents=["greedy"], episodes=2, seeds=1,
        delta=0.1, replan="every", workers=1, folder=None),
    "pkd.load_results": call(pkd.load_results, folder="results"),
    "pkd.Results.runs": call(RESULTS.runs, model="coin", agent=RESULTS.agents[0]),
    "pkd.Results.curves": call(RESULTS.curves, model="coin", agent=RESULTS.agents[0],
        episodes=np.array([1, 2])),
    "pkd.Results.select": call(RESULTS.select, models="coin", agents=RESULTS.agents[0]),
    "pkd.Results.regrets": call(RESULTS.regrets, at=2, against="world"),
    "pkd.Results.plot": call(RESULTS.plot, bounds=None, x="model", at=2, split=None,
        show="regret", size=(3, 2), style=None, path="out.svg"),
    "pkd.Results.axis": call(RESULTS.axis, x="model", at=2),
    "pkd.Results.pair": call(RESULTS.pair, model="coin", first=RESULTS.agents[0],
        second=RESULTS.agents[0]),
    "pkd.Results.pairs": call(RESULTS.pairs, over="seeds"),
    "pkd.Poisson": call(pkd.Poisson, max=3, low=0.5, high=9.0),
    "pkd.Binomial": call(pkd.Binomial, n=3, low=0.1, high=0.9),
    "pkd.Geometric": call(pkd.Geometric, max=3, low=0.1, high=0.9),
    "pkd.OneOf": call(pkd.OneOf, laws=[{0: 0.5, 1: 0.5}, {0: 1.0}]),
    "pkd.Mixture": call(pkd.Mixture, laws=[{0: 0.5, 1: 0.5}, {0: 1.0}]),
    "pkd.Results.ranks": call(RESULTS.ranks),
    "pkd.Results.to_csv": call(RESULTS.to_csv, path="out.csv"),
    "pkd.Results.table": call(RESULTS.table, form="plain"),
    "pkd.Results.first_value": call(RESULTS.first_value, model="coin"),
    "pkd.Results.slope": call(RESULTS.slope, model="coin", agent=RESULTS.agents[0]),
    # theory
    "pkd.bounds.regret_bound": call(pkd.bounds.regret_bound, model=coin, episodes=9, delta=0.1,
        replan="every"),
    "pkd.bounds.general": call(pkd.bounds.general, branching=[2], horizon=2, n_y=1, episodes=2,
        delta=0.1, n_features=1, width=1.0),
    "pkd.bounds.general_rate": call(pkd.bounds.general_rate, branching=[2], horizon=2, n_y=1,
        episodes=2),
    "pkd.bounds.smallest_episodes": call(pkd.bounds.smallest_episodes, bound=lambda k: 1.0,
        width=3.0),
    # delays
    "pkd_delay.InterArrival": call(pkd_delay.InterArrival, probabilities=(0.5, 0.5)),
    "pkd_delay.Lags": call(pkd_delay.Lags, probabilities=(0.5, 0.5)),
    "pkd_delay.DelayChain": call(pkd_delay.DelayChain, rows=[[0.5, 0.5], [0.5, 0.5]]),
    "pkd_delay.Delayed": call(pkd_delay.Delayed, problem=CHAIN, inter_arrival={0: 1.0},
        max_delay=1, delay_law="known", delay_feature=None, instead=None, shared=None,
        revealed=True),
    "pkd_delay.Delayed.constant": call(pkd_delay.Delayed.constant, problem=CHAIN, delay=1,
        instead=None),
    "pkd_delay.DelayedMDP": call(pkd_delay.DelayedMDP, mdp=CHAIN, inter_arrival={0: 1.0},
        max_delay=1, branching=2, delay_law="known", delay_feature=None, shared=None,
        revealed=True),
    "pkd_delay.DelayedMDP.constant": call(pkd_delay.DelayedMDP.constant, mdp=CHAIN, delay=1,
        branching=2),
    "pkd_delay.KnownDelay": call(pkd_delay.KnownDelay, base=CHAIN.model(), inter_arrival={0: 1.0},
        max_delay=1, n_features=1),
    "pkd_delay.UnknownDelay": call(pkd_delay.UnknownDelay, base=CHAIN.model(), longest=1,
        max_delay=1, delay_feature=None, form=pkd_delay.InterArrival, revealed=True, n_features=1),
    "pkd_delay.transforms.LateCommands": call(LateCommands, base=CHAIN.model(), law=1, max_delay=1,
        first_action=0),
    "pkd_delay.LateEnv": call(pkd_delay.LateEnv, env=CHAIN, observations=1, actions=1, max_delay=1,
        rewards="shown", first_action=0, horizon=3, start="shown", end="shown", news=True),
    "pkd_delay.LateEnv.reset": call(reset_late().reset, seed=0, options=None),
    "pkd_delay.LateEnv.step": call(lambda action: reset_late().step(action), action=0),
    "pkd_delay.LateEnv.code_of": call(reset_late().code_of, action=0),
    "pkd_delay.LateEnv.ask": call(reset_late().ask, policy=LATE_PLAN,
        observation=reset_late().reset()[0]),
    "pkd_delay.FlatLateEnv": call(pkd_delay.FlatLateEnv, env=reset_late()),
    "pkd_delay.LateVectorEnv": call(pkd_delay.LateVectorEnv, env="CartPole-v1", num_envs=1,
        observations=1),
    "pkd_delay.late_vector": call(pkd_delay.late_vector, env="CartPole-v1", num_envs=1,
        observations=1),
    "pkd_delay.envs.drive": call(drive, env=reset_late(), learner=pkd.OptimisticLearner(LATE),
        episodes=1, seed=0),
    "pkd_delay.envs.play": call(play, env=reset_late(), policy=LATE_PLAN, episodes=1, seed=0),
    "pkd_delay.laws.fit_delay": call(fit_delay, form="lags", log=LOG, max_delay=2, delta=0.1,
        tick=1.0, false_alarm=0.1),
    "pkd_delay.plan": call(pkd_delay.plan, delayed=LATE),
    "pkd_delay.learn": call(pkd_delay.learn, delayed=LATE, episodes=2, delay_law="known",
        optimism=pkd.MVP()),
    "pkd_delay.optimistic_plan": call(pkd_delay.optimistic_plan, delayed=LATE,
        transition_counts=CHAIN.transitions, delay_counts=None, episodes=9, delta=0.1,
        optimism=None),
    "pkd_delay.episodes.simulate": call(simulate, delayed=LATE, policy=LATE_PLAN.action,
        episodes=1, seed=0, deltas=None),
    "pkd_delay.planning.DelayedPlan.action": call(LATE_PLAN.action, h=1, state=0, queue=(),
        waited=0),
    "pkd_delay.planning.DelayedPlan.simulate": call(LATE_PLAN.simulate, episodes=1, seed=0),
    "pkd_delay.long.plan_long": call(plan_long, delayed=LATE, gap=0.01, seconds=9.0, memory=0.1,
        delta=0.1, tell=None),
    "pkd_delay.BoundedPlan.action": call(BOUNDED.action, h=1, state=0, queue=(), waited=0),
    "pkd_delay.BoundedPlan.rows": call(lambda **given: list(BOUNDED.rows(**given)), step=1, most=3),
    "pkd_delay.BoundedPlan.save": call(BOUNDED.save, path="out.npz"),
    "pkd_delay.BoundedPlan.load": call(pkd_delay.BoundedPlan.load, path="bounded.npz",
        delayed=LATE),
    "pkd_delay.hard.tree_levels": call(hard.tree_levels, states=8, actions=2),
}
# fmt: on

# The names of JUNK that an argument may be, in some call at least.
TAKES = {
    "-1": "baseline optimal_value",
    "0": "action actions baseline c c1 c2 count delay episodes first_action gap law log_factor "
    "longest max_delay most observations optimal_value probability seed share smoothing start "
    "state tolerance waited width x",
    "0.5": "baseline c c1 c2 delta discount false_alarm gap log_factor memory optimal_value prior "
    "probability seconds share smoothing tick tolerance until width",
    "2.5": "baseline c c1 c2 episodes features gap growth log_factor memory optimal_value prior "
    "seconds smoothing tick tolerance until width",
    "tiny": "baseline c c1 c2 discount false_alarm gap log_factor memory optimal_value prior "
    "probability seconds share smoothing tolerance until width",
    "huge": "count",
    "a class": "delay_feature instead inter_arrival law successors tell",
    "a function": "actions delay_feature instead inter_arrival law observations successors tell",
    "a dict": "law options successors",
    "a flag": "action exact first_action large minimax monotone news revealed shared start state "
    "support",
    "a word": "checkpoint folder path policy save",
    "a frame": "commands", "an array": "commands", "an array of NaN": "commands",
    "a list": "actions commands", "a tuple": "actions commands reward_range",
    "no list": "branching episodes queue",
    "nothing": "action_names at ax baseline bounds branching checkpoint commands counts "
    "delay_counts delay_feature delay_law deltas episodes features first_action folder growth "
    "horizon instead large law log_factor longest max_delay max_states memory model n_features "
    "observations optimal_value optimism options over period policy save season seed shared size "
    "split start state_names step style successors support tell tick truth until width y",
}  # fmt: skip
# What one call alone takes: any hashable value is a state, and delta=0 wants exact bounds.
ALONE = {
    ("pkd.TabularMDP.from_function", "start"): set(JUNK),
    ("pkd_delay.long.plan_long", "delta"): {"0"},
    ("pkd.Queue", "entries"): {
        "a word",
        "bytes",
        "a list",
        "no list",
        "a dict",
        "a tuple",
        "an array",
        "an array of NaN",
        "a frame",
    },
    ("pkd.Results.select", "models"): {"nothing"},
    ("pkd.Results.select", "agents"): {"nothing"},
    ("pkd.Results.plot", "show"): {"no list"},
    ("pkd.Results.plot", "size"): {"a tuple"},
    ("pkd.Results.plot", "style"): {"no list"},
    ("pkd.Results.plot", "bounds"): {"a dict"},
    ("pkd.Results.plot", "path"): {"nothing"},
    ("pkd.Poisson", "low"): {"0", "0.5", "2.5", "tiny"},
    ("pkd.Poisson", "high"): {"0.5", "2.5", "nothing"},
    ("pkd.Binomial", "low"): {"0", "0.5", "tiny"},
    ("pkd.Binomial", "high"): {"0.5"},
    ("pkd.Geometric", "low"): {"0", "0.5", "tiny"},
    ("pkd.Geometric", "high"): {"0.5"},
    ("pkd_delay.LateEnv", "rewards"): {"0"},
}
# What a message may call an argument, besides its name.
SAID = {
    **dict.fromkeys(["base", "delayed", "env", "given", "problem"], "problem|model"),
    "model": "problem", "models": "problem|model", "agents": "agent",
    "law": "travel time|actions|Known", "probabilities": "inter_arrival|lags", "rows": "delays",
    "optimism": "rule", "width": "bound", "commands": "first_action", "state": "x=|x is",
    "waited": "counter=|y is", "counts": "the log", "log": "counts", "trajectories": "frame",
}  # fmt: skip

# Public names without arguments to check: constants, types, classes for subclasses, and records,
# which the software makes and whose users' values `check_model` and the learner check.
ELSEWHERE = {
    "pkd": "Agent CHANCE Certificate END Episode Evaluation Family Greedy Law ModelError NoiseMDP "
    "Optimism PartiallyKnownMDP Plan PolicyTable Problem PythonRule Queue Results Run Transition "
    "UnknownReward __version__ bounds sure",
    "pkd_delay": "hard l1 pomdp rivals sat theory",  # theory: see tests/theory
}


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A working folder with one file of each kind."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("calls"))
    PLAN.save("plan.npz")
    BOUNDED.save("bounded.npz")
    PLAN.to_csv("plan.csv")
    RUN.save("run.npz")
    make_learner().save("learner.npz")
    coin.save_npz("table.npz")
    pkd.experiment({"coin": coin}, "greedy", 2, 1, folder="results")
    Path("log.csv").write_text("z,x\ncoin,heads\n", encoding="utf-8")
    yield
    os.chdir(before)


@pytest.mark.parametrize(
    ("name", "argument"), [(name, arg) for name, (_, good) in CALLS.items() for arg in good]
)
def test_a_wrong_argument_is_one_error_that_names_it(name: str, argument: str) -> None:
    call, good = CALLS[name]
    # A word may be a name or a file: it is enough to quote it.
    named = f"nonsense|{argument}|{SAID.get(argument, argument)}".replace("_", ".?")
    wrong = []
    for what, value in JUNK.items():
        takes = argument in TAKES.get(what, "").split() or what in ALONE.get((name, argument), ())
        try:
            call(**{**good, argument: value})
        except pkd.ModelError as error:
            if not re.search(named, str(error), re.IGNORECASE):
                wrong.append(f"{what}: {error}")
        except Exception as error:  # noqa: BLE001 - any other error is what is searched for
            wrong.append(f"{what}: {type(error).__name__}: {error}")
        else:
            wrong += [] if takes else [f"{what} is accepted"]
    assert not wrong


@pytest.mark.parametrize("name", CALLS)
def test_the_call_is_good_where_no_argument_is_wrong(name: str) -> None:
    call, good = CALLS[name]
    call(**good)


@pytest.mark.parametrize("package", [pkd, pkd_delay])
def test_every_public_name_is_tried(package: Any) -> None:
    tried = {name.split(".")[1] for name in CALLS if name.split(".")[0] == package.__name__}
    assert tried | set(ELSEWHERE[package.__name__].split()) | {"Greedy"} >= set(package.__all__)


def test_a_missing_argument_is_pythons_own_error() -> None:
    with pytest.raises(TypeError, match="model"):
        pkd.plan()  # type: ignore[call-arg]


WORDS = ("practical", "mvp:c1=1,c2=1", {"rule": "hoeffding", "c": 1.0})


@pytest.mark.parametrize("words", WORDS, ids=str)
def test_the_words_of_a_rule_are_as_good_as_the_rule(words: Any) -> None:
    rule = as_rule(words)
    assert pkd.learn(coin, 9, optimism=words).returns.tolist() == (
        pkd.learn(coin, 9, optimism=rule).returns.tolist()
    )
    made = [
        pkd.optimistic_plan(coin, COUNTS, episodes=9, optimism=one).value for one in (words, rule)
    ]
    assert made[0] == made[1]
    assert pkd.OptimisticLearner(coin, 9, optimism=words).optimism == rule
    assert pkd_delay.learn(LATE, 9, optimism=words).config["optimism"] == rule.to_config()


@pytest.mark.parametrize("seed", [3, np.int64(3), np.uint8(3)])
def test_any_whole_number_is_a_seed(seed: Any) -> None:
    assert pkd.learn(coin, 9, seed=seed).returns.tolist() == (
        pkd.learn(coin, 9, seed=3).returns.tolist()
    )
    assert pkd.simulate(coin, episodes=3, seed=seed) == pkd.simulate(coin, episodes=3, seed=3)
    assert pkd.compare({"coin": coin}, ["greedy"], 5, [seed]).cells[0].seed == 3


def test_a_generator_as_a_seed_is_told_what_to_give() -> None:
    with pytest.raises(pkd.ModelError, match=r"take int\(seed\.integers\(2\*\*63\)\)"):
        pkd.learn(coin, 9, seed=np.random.default_rng(1))  # type: ignore[arg-type]


def test_a_value_that_is_long_is_called_by_its_class() -> None:
    with pytest.raises(pkd.ModelError) as error:
        pkd.learn(coin, 9, seed=pd.DataFrame({"x": range(99)}))
    assert str(error.value) == "seed is a DataFrame; expected a whole number >= 0"
