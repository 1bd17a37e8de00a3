"""pkd: planning and learning in Markov decision processes whose dynamics are known in part.

The state is (x, y). The kernel of y is known. The law of x' depends only on a known feature
z = phi_Z(s, a, y'), and only that law is learned. Subclass `PartiallyKnownMDP`; `check_model`,
`plan`, `evaluate` and `learn` then work for the new domain. `__init__.pyi` lists all names.
"""

from pkd.lazy import attach

__version__ = "0.1.0"

__getattr__, _names = attach(__name__, __file__)
__all__ = ["__version__", *_names]
# Modules whose names adapters may use, besides the public ones.
FOR_ADAPTERS = (
    "adapters", "certification.assumptions", "certification.confidence", "certification.logs",
    "check", "cli", "episode", "expect", "experiments.rivals", "explore", "explore.graph",
    "explore.sizes", "files", "files.logs", "kernels", "lazy", "model", "problem", "progress",
    "rules", "show.tables", "theory.bounds", "transforms", "workers", "wrapped",
)  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*__all__, "FOR_ADAPTERS"})
