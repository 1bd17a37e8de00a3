"""pkd: planning and learning in Markov decision processes whose dynamics are known in part.

The state is (x, y); the kernel of y is known; the law of x' depends only on a known feature z = phi_Z(s, a, y'), and only that law is
learned. Subclass `PartiallyKnownMDP`; `check_model`, `plan`, `evaluate` and `learn` then work for the new domain.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Names are imported when they are first used, so that `import pkd` and the command line start at once.
_HOMES = {
    "model": [
        "CHANCE",
        "END",
        "Episode",
        "Known",
        "ModelError",
        "NoiseMDP",
        "PartiallyKnownMDP",
        "Transition",
        "UnknownReward",
        "sure",
    ],
    "tabular": ["TabularMDP"],
    "flattening": ["flatten"],
    "check": ["check_model"],
    "independence": ["check_samples"],
    "compiled": ["Compiled", "compile"],
    "planning": ["Plan", "evaluate", "optimistic_plan", "plan"],
    "optimism": ["MVP", "Greedy", "Hoeffding", "PosteriorSampling"],
    "learning": ["learn"],
    "learner": ["OptimisticLearner"],
    "simulation": ["simulate"],
    "run": ["Run"],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", "bounds", *sorted(_HOME_OF)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name == "bounds":
        return import_module("pkd.bounds")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'pkd' has no attribute {name!r}")
    value = getattr(import_module(f"pkd.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
