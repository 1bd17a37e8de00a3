"""What an experiment is about, as values: models, agents, the grid, and the jobs in it.

A model is words of the command line, such as "riverswim --horizon 30", or a problem. An agent is
words, such as "mvp:c1=1,c2=1" or "my_agents:QLearning:rate=0.5", or an `Agent`, or a rule of
optimism, or a table {"agent": one of these, "replan": its schedule}. {"model": one, "world":
another} is a model whose learners play in another world: they get the one, states and actions of
both are the same, and regret is against the best policy of the world. `pkd.experiments.sweep` makes
many models and agents of one. Words can be sent to any process; an object must be picklable for
that. Any package can register agents in the entry-point group `pkd.agents`.
"""

from __future__ import annotations

import difflib
import hashlib
import inspect
import json
import re
import shlex
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from pkd.engine.threads import set_threads
from pkd.expect import show, whole
from pkd.experiments.agent import Agent
from pkd.experiments.play import Player, World, describe_agent, describe_run, name_agent
from pkd.experiments.sweep import Point, Sweep, read_sweep, spread
from pkd.model import ModelError, PartiallyKnownMDP
from pkd.optimism import Optimism
from pkd.planning.plan import check_schedule, resolve
from pkd.problem import as_model, load_object, load_point, parse_options, registered, unpack
from pkd.results.run import Run
from pkd.rules import RULES, is_rule, make_rule
from pkd.rules.schedule import read_schedule
from pkd.words.models import find_words, set_words

__all__ = [
    "AGENTS", "AgentSpec", "Grid", "Job", "ModelSpec", "label_model", "list_jobs", "make_agent",
    "make_grid", "run_job", "split_agents",
]  # fmt: skip

KEY = r"\s*[^\W\d]\w*\s*="  # the beginning of an option, such as rate=
AGENTS = "pkd.agents"  # the entry-point group of agents: a class, or a function that makes one
MOST_SEEDS = 1_000_000
LONGEST_NAME = 60  # characters of a label in the name of a file
Labelled = tuple[str | None, Any]  # a model or an agent that a user gave, and its label if any

_here = threading.local()  # the last world of this thread


@attrs.frozen
class ModelSpec:
    """A model by words of the command line, or as a problem."""

    label: str
    words: tuple[str, ...] = ()
    given: Any = None  # where there are no words
    remarks: tuple[str, ...] = ()  # what a user should know about it
    point: Point = attrs.field(factory=Point)  # its place in a sweep
    world: ModelSpec | None = None  # that is played, where it is another one
    episodes: int | None = None  # of its runs, where a sweep says so

    def build(self) -> World:
        """The compiled model with its law."""
        if self.world is not None:
            own, world = attrs.evolve(self, world=None).build(), self.world.build()
            return World(world.compiled, world.law, own)
        if self.given is not None:
            return World(*resolve(self.given, None))
        found = find_words(self.words)
        return World(*resolve(found.model, found.with_law()))


@attrs.frozen
class AgentSpec:
    """An agent by its words, or as an object."""

    label: str
    words: str = ""
    given: Player | None = None  # where there are no words
    replan: str | None = None  # its own schedule; None: that of the grid
    point: Point = attrs.field(factory=Point)

    def build(self) -> Player:
        """The agent itself."""
        return make_agent(self.words) if self.given is None else self.given


@attrs.frozen
class Grid:
    """Every model with every agent and every seed."""

    models: tuple[ModelSpec, ...]
    agents: tuple[AgentSpec, ...]
    seeds: tuple[int, ...]
    episodes: int
    delta: float = 0.05
    replan: str = "doubling"
    title: str = ""  # the question, in words
    file: Mapping[str, Any] = attrs.field(
        factory=dict
    )  # models, agents and sweep as an experiment file says them

    def __len__(self) -> int:
        return len(self.models) * len(self.agents) * len(self.seeds)


@attrs.frozen
class Job:
    """One run that is to be computed, by any process: small and picklable."""

    model: ModelSpec
    agent: AgentSpec
    told: dict[str, Any]  # a part of the configuration of the run
    key: str  # the name of its file, without an ending
    # What all jobs of one model share; None: not known yet.
    optimum: float | None = None
    fingerprint: str = ""
    checkpoint: str | None = None  # a file

    def __str__(self) -> str:
        return f"{self.model.label}, {self.agent.label}, seed {self.told['seed']}"


def make_grid(
    models: Any,
    agents: Any,
    episodes: Any,
    seeds: Any,
    *,
    delta: Any = 0.05,
    replan: Any = "doubling",
    sweep: Any = None,
) -> Grid:
    """The grid of what a user gave; one ModelError names everything that is wrong with it.

    >>> grid = make_grid("riverswim --horizon 30", ["mvp:c1=1", "greedy"], 1000, 5)
    >>> grid.models[0].label, [agent.words for agent in grid.agents], len(grid)
    ('riverswim --horizon 30', ['mvp:c1=1', 'greedy'], 10)
    """
    findings: list[str] = []
    with _collect(findings):
        check_schedule(episodes, delta)
    with _collect(findings):
        replan = read_schedule(replan).text
    numbers = _read_seeds(seeds, findings)
    over = Sweep()
    with _collect(findings):
        over = read_sweep(sweep or {})
    file = {"sweep": sweep or {}}
    read_models = _read_all(models, "model", _read_model, findings, over.models, file)
    read_agents = _read_all(agents, "agent", _read_agent, findings, over.agents, file)
    if findings:
        raise ModelError(findings)
    grid = Grid(tuple(read_models), tuple(read_agents), numbers, int(episodes), float(delta))
    return attrs.evolve(grid, replan=replan, file=file)


def list_jobs(grid: Grid) -> Iterator[Job]:
    """Every job of a grid; those of one model stand together."""
    agents = [(spec, spec.build()) for spec in grid.agents]
    for model in grid.models:
        for spec, agent in agents:
            for seed in grid.seeds:
                told = describe_run(
                    agent,
                    model.episodes or grid.episodes,
                    seed,
                    grid.delta,
                    spec.replan or grid.replan,
                )
                # The words of an agent say options that its class may not keep.
                words = [model.label, model.words, spec.label, spec.words]
                if model.world is not None:
                    words.append(model.world.words)
                text = json.dumps([*words, told], sort_keys=True)
                digest = hashlib.sha256(text.encode()).hexdigest()[:12]
                key = f"{_slug(model.label)}--{_slug(spec.label)}--{seed}--{digest}"
                yield Job(model, spec, told, key)


def run_job(job: Job, *, alone: bool = False) -> Run:
    """The run of a job; alone: no other job runs beside it, so all threads may be used.

    The run does not depend on the process, the order of the jobs or the number of threads.
    """
    if not alone:
        set_threads(1)  # jobs share the machine by processes, and not by threads as well
    world = _find_world(job)
    file = None if job.checkpoint is None else Path(job.checkpoint)
    if file is not None and not file.parent.is_dir():
        file = None  # another machine
    run = world.play(job.agent.build(), job.told, file)
    return attrs.evolve(run, label=job.agent.label, model=job.model.label)


def keep_world(label: str, world: World) -> None:
    """Keeps a world for the jobs of this thread, until the next one."""
    _here.label, _here.world = label, world


def _find_world(job: Job) -> World:
    """The world of a job: the last one of this thread if it is the same.

    A compiled model has working arrays, so two threads must not share one.
    """
    world: World | None = getattr(_here, "world", None)
    if world is not None and (_here.label, world.fingerprint) == (job.model.label, job.fingerprint):
        return world
    world = job.model.build()
    if job.optimum is not None:
        if world.fingerprint != job.fingerprint:
            raise ModelError(
                f"{job.model.label} is another model in this process: its fingerprint differs. "
                "Expected the same files and versions wherever jobs run, and a model that is built "
                "the same way every time"
            )
        world.optimum = job.optimum
    keep_world(job.model.label, world)
    return world


def make_agent(words: str) -> Player:
    """The agent that words stand for: NAME or module:Class, then :key=value,... for its options.

    >>> make_agent("posterior:prior=0.5")
    PosteriorSampling(prior=0.5)
    """
    name, options = split_words(words)
    if is_rule(name):
        return make_rule(words)
    agents = registered(AGENTS)
    if name in agents:
        factory = load_point(agents[name])
    elif ":" in name:
        factory = load_object(name)
    else:
        known = [*RULES, *agents]
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise ModelError(
            f"no agent is called {name!r}{hint} Expected a name ({', '.join(known)}) or "
            "module:Class"
        )
    if isinstance(factory, Agent | Optimism) and not options:
        return factory
    if not callable(factory):
        raise ModelError(f"{name}: expected a class of agents, found {type(factory).__name__}")
    try:
        inspect.signature(factory).bind(**options)
    except TypeError as problem:
        takes = ", ".join(inspect.signature(factory).parameters) or "none"
        raise ModelError(f"{name}: {problem}; its options are {takes}") from None
    return _check_agent(name, factory(**options))


def split_words(words: str) -> tuple[str, dict[str, Any]]:
    """The name and the options of an agent's words.

    >>> split_words("per_state:optimism={'rule':'mvp','c1':1},delta=0.1")
    ('per_state', {'optimism': {'rule': 'mvp', 'c1': 1}, 'delta': 0.1})
    """
    name, *rest = re.split(rf":(?={KEY})", words.strip(), maxsplit=1)
    if not rest:
        return name, {}
    return name, parse_options(re.split(rf",(?={KEY})", rest[0].replace(" ", "")))


def split_agents(text: str) -> list[str]:
    """Words of several agents: a comma before key=value belongs to the agent before it.

    >>> split_agents("mvp:c1=1,c2=1,greedy")
    ['mvp:c1=1,c2=1', 'greedy']
    """
    return [words.strip() for words in re.split(r",(?![^,:]*=)", text)]


def label_model(words: Sequence[str]) -> str:
    """The words of a model as its label; `--model`, `--option` and `=` of a flag are left out.

    >>> label_model(("inventory", "--option", "lead_time=2", "--horizon=9"))
    'inventory lead_time=2 --horizon 9'
    """
    named = [word for word in words if word not in ("--model", "--option")]
    short = [re.sub(r"^--(model|option)=", "", word) for word in named]
    return " ".join(re.sub(r"^(--[\w-]+)=", r"\1 ", word) for word in short)


def _check_agent(name: str, made: Any) -> Player:
    if isinstance(made, type):
        raise ModelError(f"{name}: expected an agent, found the class {made.__name__}; call it")
    if not isinstance(made, Agent | Optimism):
        raise ModelError(f"{name} is {show(made)}; expected a pkd.Agent or a rule of optimism")
    return made


def _read_model(label: str | None, given: Any, values: Mapping[str, Any]) -> ModelSpec:
    """A model in which flags and options have these values; `episodes` is about its runs."""
    values, episodes = dict(values), values.get("episodes")
    values.pop("episodes", None)
    if episodes is not None:
        check_schedule(episodes, 0.5)
    if isinstance(given, Mapping):
        told = dict(given)
        parts = [told.pop(name, None) for name in ("model", "world")]
        if None in parts or told:
            raise ModelError(f"a table of a model has 'model' and 'world'; found {list(given)}")
        own, world = _read_model(None, parts[0], values), _read_model(None, parts[1], values)
        label = label or f"{own.label} in {world.label}"
        return attrs.evolve(own, label=label, world=world, episodes=episodes or own.episodes)
    if isinstance(given, ModelSpec):
        given, label = given.given or shlex.join(given.words), label or given.label
    if not isinstance(given, str):
        if values and not callable(given):
            raise ModelError("a sweep needs the words of a model, or a function that makes it")
        given = given(**values) if values else given
        unpack(given)
        label = label or type(as_model(given)).__name__
        return ModelSpec(label, given=given, episodes=episodes)
    base = tuple(shlex.split(given))
    words = set_words(base, values)
    found = find_words(words)
    found.with_law()
    remarks = found.remarks
    return ModelSpec(label or label_model(base), words, remarks=remarks, episodes=episodes)


def _read_agent(label: str | None, given: Any, values: Mapping[str, Any]) -> AgentSpec:
    """An agent with these values of its options; `replan` of a rule is about its runs."""
    told = {"agent": given} if not isinstance(given, Mapping) else dict(given)
    given, replan = told.pop("agent", None), values.get("replan", told.pop("replan", None))
    if told:
        raise ModelError(f"a table of an agent has 'agent' and 'replan'; found {list(told)}")
    words = ""
    if isinstance(given, str):
        words = ",".join([given, *(f"{k}={v}" for k, v in values.items() if k != "replan")])
        if values.keys() - {"replan"} and not split_words(given)[1]:
            words = words.replace(",", ":", 1)
        given, own = _split_replan(words)
        words, replan = given, own or replan
    elif values.keys() - {"replan"}:
        raise ModelError("a sweep over options needs the words of an agent")
    made = make_agent(words) if words else _check_agent("it", given)
    if replan is not None and not isinstance(made, Optimism):
        raise ModelError(f"{name_agent(made)} plans by itself; give `replan` as its own option")
    if replan is not None:
        replan = read_schedule(replan).text
    return AgentSpec(label or name_agent(made), words, None if words else made, replan)


def _split_replan(words: str) -> tuple[str, str | None]:
    """The words of a rule without replan=..., which is no constant of it, and that schedule."""
    name, _ = split_words(words)
    found = re.search(r"[:,]replan=([^,]*)", words)
    if (
        found is None
        or name in registered(AGENTS)
        or not isinstance(make_agent(words.replace(found[0], "")), Optimism)
    ):
        return words, None
    rest = words.replace(found[0], "")
    return (rest if split_words(rest)[0] == name else rest.replace(",", ":", 1)), found[1]


def _read_all(
    given: Any,
    kind: str,
    read: Callable[[str | None, Any, Mapping[str, Any]], Any],
    findings: list[str],
    over: Mapping[str, Mapping[Any, Mapping[str, Any]]],
    file: dict[str, Any],
) -> list[Any]:
    """Every model or agent that was given, at every point of a sweep; faults join the findings."""
    pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], PartiallyKnownMDP)
    labelled: Iterable[Labelled]
    if isinstance(given, Mapping) and "agent" not in given and "world" not in given:
        labelled = given.items()
    elif isinstance(given, list | set | tuple) and not pair:  # a pair is one problem
        labelled = [_split_label(one) for one in given]
    else:
        labelled = [(None, given)]
    made: list[list[Any]] = []
    file[f"{kind}s"] = []
    for place, (label, one) in enumerate(labelled, 1):
        with _collect(findings, f"{kind} {place}: "):
            made.append(spread(partial(read, label, one), over))
            file[f"{kind}s"].append(_describe(label, one))
    if not made and not findings:
        findings.append(f"there is no {kind}; expected one at least")
    taken = {key for specs in made for one in specs for key in one.point.values}
    if made and (left := [key for key in over if key not in taken]):
        findings.append(f"[sweep] {', '.join(left)}: no {kind} takes this with its first value")
    return _tell_apart([one for specs in made for one in specs], kind, findings)


def _describe(label: str | None, given: Any) -> dict[str, Any]:
    """What an experiment file says of a model or an agent; words are None where it cannot."""
    told = dict(given) if isinstance(given, Mapping) else {"agent": given}
    if "world" in told:
        parts = {key: told[key] if isinstance(told[key], str) else None for key in told}
        return {"label": label, **parts, "words": None}
    words = told["agent"]
    if isinstance(words, ModelSpec):
        return _describe(words.label, shlex.join(words.words) or None)
    replan = told.get("replan")
    return {
        "label": label,
        "words": words if isinstance(words, str) else None,
        "replan": None if replan is None else read_schedule(replan).text,
    }


def _split_label(one: Any) -> Labelled:
    """An entry of a list with its label: {label: words} has one."""
    if isinstance(one, dict) and len(one) == 1 and not {"agent", "world"} & one.keys():
        [(label, given)] = one.items()
        return label, given
    return None, one


def _tell_apart(specs: list[Any], word: str, findings: list[str]) -> list[Any]:
    """Adds the words to labels that occur twice; equal objects need labels of their own."""
    twice = {label for label, n in Counter(spec.label for spec in specs).items() if n > 1}
    changed = []
    for spec in specs:
        if spec.label in twice:
            words = spec.words if isinstance(spec.words, str) else " ".join(spec.words)
            options = words or _list_options(spec.given)
            if word == "agent" and spec.replan:
                options = ", ".join(filter(None, [options, f"replan={spec.replan}"]))
            spec = attrs.evolve(spec, label=f"{spec.label} ({options})" if options else spec.label)
        changed.append(spec)
    for label, n in Counter(spec.label for spec in changed).items():
        if n > 1:
            findings.append(
                f"{n} {word}s are called {label!r}; give each a label of its own: {{label: {word}}}"
            )
    return changed


def _list_options(given: Any) -> str:
    if not isinstance(given, Agent):
        return ""
    options = describe_agent(given)
    return ", ".join(f"{k}={v}" for k, v in options.items() if k not in ("agent", "label"))


def _read_seeds(seeds: Any, findings: list[str]) -> tuple[int, ...]:
    is_count = not whole("seeds", seeds)
    try:
        numbers = tuple(range(min(seeds, MOST_SEEDS + 1)) if is_count else seeds)
    except TypeError:
        numbers = ()
    right = numbers and not any(whole("seed", one) for one in numbers)
    if not right or isinstance(seeds, bytes) or not len(set(numbers)) == len(numbers) <= MOST_SEEDS:
        findings.append(
            f"seeds is {show(seeds)}; expected a whole number from 1 to {MOST_SEEDS:,}, or "
            "different numbers >= 0"
        )
        return ()
    return tuple(map(int, numbers))


@contextmanager
def _collect(findings: list[str], where: str = "") -> Iterator[None]:
    """Adds what is raised inside to the findings."""
    try:
        yield
    except ModelError as problem:
        findings.extend(f"{where}{finding}" for finding in problem.findings)
    except Exception as problem:  # noqa: BLE001 - models and agents are the user's own code
        findings.append(f"{where}{type(problem).__name__}: {problem}")


def _slug(label: str) -> str:
    return re.sub(r"[^\w.=-]+", "_", label).strip("_.-")[:LONGEST_NAME]
