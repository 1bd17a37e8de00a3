"""What an experiment is about, as values: models and agents with their labels, and the grid.

A model is words of the command line, such as "riverswim --horizon 30", or a problem. An agent is
words, such as "mvp:c1=1,c2=1" or "my_agents:QLearning:rate=0.5", or an `Agent`, or a rule of
optimism. Words can be sent to any process; an object must be picklable for that. Any package can
register agents in the entry-point group `pkd.agents`.
"""

from __future__ import annotations

import difflib
import inspect
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from typing import Any

import attrs

from pkd.experiments.agent import Agent
from pkd.experiments.play import Player, World, describe_agent, name_agent
from pkd.model import ModelError
from pkd.model_words import find_words
from pkd.optimism import Optimism
from pkd.planning import check_schedule, resolve
from pkd.problem import as_model, load_object, load_point, parse_options, registered, unpack
from pkd.rule_words import RULES, make_rule
from pkd.schedule import read_schedule

__all__ = [
    "AGENTS", "AgentSpec", "Grid", "ModelSpec", "Named", "label_model", "list_agents",
    "make_agent", "make_grid", "split_agents",
]  # fmt: skip

KEY = r"\s*[^\W\d]\w*\s*="  # the beginning of an option, such as rate=
AGENTS = "pkd.agents"  # the entry-point group of agents: a class, or a function that makes one


@attrs.frozen
class Named:
    """A model or an agent that a user gave, with a label or without."""

    label: str | None
    given: Any


@attrs.frozen
class ModelSpec:
    """A model by words of the command line, or as a problem."""

    label: str
    words: tuple[str, ...] = ()
    given: Any = None  # where there are no words
    remarks: tuple[str, ...] = ()  # what a user should know about it

    def build(self) -> World:
        """The compiled model with its law."""
        if self.given is None:
            found = find_words(self.words)
            return World(*resolve(found.model, found.with_law()), self.label)
        return World(*resolve(self.given, None), self.label)


@attrs.frozen
class AgentSpec:
    """An agent by its words, or as an object."""

    label: str
    words: str = ""
    given: Player | None = None  # where there are no words

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

    def __len__(self) -> int:
        return len(self.models) * len(self.agents) * len(self.seeds)


def make_grid(
    models: Any,
    agents: Any,
    episodes: Any,
    seeds: Any,
    *,
    delta: Any = 0.05,
    replan: Any = "doubling",
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
    read_models = _read_all(models, "model", _read_model, findings)
    read_agents = _read_all(agents, "agent", _read_agent, findings)
    if findings:
        raise ModelError(findings)
    return Grid(
        tuple(read_models), tuple(read_agents), numbers, int(episodes), float(delta), replan
    )


def make_agent(words: str) -> Player:
    """The agent that words stand for: NAME or module:Class, then :key=value,... for its options.

    >>> make_agent("posterior:prior=0.5")
    PosteriorSampling(prior=0.5)
    """
    name, options = split_words(words)
    if name in RULES:
        return make_rule(words)
    agents = list_agents()
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
    return _call(name, factory, options)


def split_words(words: str) -> tuple[str, dict[str, Any]]:
    """The name and the options of an agent's words.

    >>> split_words("my.agents:Q:rate=0.5,window=2")
    ('my.agents:Q', {'rate': 0.5, 'window': 2})
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


def list_agents() -> dict[str, EntryPoint]:
    """The registered agents by name."""
    return registered(AGENTS)


def label_model(words: Sequence[str]) -> str:
    """The words of a model as its label; `--model`, `--option` and `=` of a flag are left out.

    >>> label_model(("inventory", "--option", "lead_time=2", "--horizon=9"))
    'inventory lead_time=2 --horizon 9'
    """
    named = [word for word in words if word not in ("--model", "--option")]
    short = [re.sub(r"^--(model|option)=", "", word) for word in named]
    return " ".join(re.sub(r"^(--[\w-]+)=", r"\1 ", word) for word in short)


def _call(name: str, factory: Any, options: Mapping[str, Any]) -> Player:
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


def _check_agent(name: str, made: Any) -> Player:
    if isinstance(made, type):
        raise ModelError(f"{name}: expected an agent, found the class {made.__name__}; call it")
    if not isinstance(made, Agent | Optimism):
        raise ModelError(
            f"{name}: expected a pkd.Agent or a rule of optimism, found {type(made).__name__}"
        )
    return made


def _read_model(label: str | None, given: Any) -> ModelSpec:
    if isinstance(given, ModelSpec):
        return given
    if not isinstance(given, str):
        unpack(given)
        return ModelSpec(label or type(as_model(given)).__name__, given=given)
    words = tuple(shlex.split(given))
    found = find_words(words)
    found.with_law()
    return ModelSpec(label or label_model(words), words, remarks=found.remarks)


def _read_agent(label: str | None, given: Any) -> AgentSpec:
    if isinstance(given, AgentSpec):
        return given
    if isinstance(given, str):
        return AgentSpec(label or name_agent(make_agent(given)), given)
    made = _check_agent("it", given)
    return AgentSpec(label or name_agent(made), given=made)


def _read_all(
    given: Any, word: str, read: Callable[[str | None, Any], Any], findings: list[str]
) -> list[Any]:
    """Every model or agent that was given; what is wrong joins the findings."""
    labelled: Iterable[tuple[str | None, Any]]
    if isinstance(given, Mapping):
        labelled = given.items()
    elif isinstance(given, list | set) or (isinstance(given, tuple) and not _is_pair(given)):
        labelled = [
            (one.label, one.given) if isinstance(one, Named) else (None, one) for one in given
        ]
    else:
        labelled = [(None, given)]
    made = []
    for place, (label, one) in enumerate(labelled, 1):
        with _collect(findings, f"{word} {place}: "):
            made.append(read(label, one))
    if not made and not findings:
        findings.append(f"there is no {word}; expected one at least")
    return _tell_apart(made, word, findings)


def _tell_apart(specs: list[Any], word: str, findings: list[str]) -> list[Any]:
    """Adds the words to labels that occur twice; equal objects need labels of their own."""
    twice = {label for label, n in Counter(spec.label for spec in specs).items() if n > 1}
    changed = []
    for spec in specs:
        if spec.label in twice:
            words = spec.words if isinstance(spec.words, str) else " ".join(spec.words)
            options = words or _list_options(spec.given)
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
    is_count = isinstance(seeds, int) and not isinstance(seeds, bool)
    try:
        numbers = tuple(range(seeds)) if is_count else tuple(seeds)
    except TypeError:
        numbers = ()
    right = numbers and all(type(one) is int and one >= 0 for one in numbers)
    if not right or len(set(numbers)) < len(numbers):
        findings.append(
            f"seeds is {seeds!r}; expected a whole number >= 1, or different numbers >= 0"
        )
        return ()
    return numbers


def _is_pair(given: tuple[Any, ...]) -> bool:
    """Whether a tuple is one problem, (model, law), and not two of them."""
    from pkd.model import PartiallyKnownMDP

    return len(given) == 2 and isinstance(given[0], PartiallyKnownMDP)


@contextmanager
def _collect(findings: list[str], where: str = "") -> Iterator[None]:
    """Adds what is raised inside to the findings."""
    try:
        yield
    except ModelError as problem:
        findings.extend(f"{where}{finding}" for finding in problem.findings)
    except Exception as problem:  # noqa: BLE001 - models and agents are the user's own code
        findings.append(f"{where}{type(problem).__name__}: {problem}")
