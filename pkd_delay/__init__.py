"""pkd_delay: planning and learning when states are shown late, as an adapter of `pkd`.

`DelayedMDP` is a tabular MDP with random delays, and `Delayed` is any problem with them.
`KnownDelay` and `UnknownDelay` turn a partially known MDP into its delayed version, which is a
partially known MDP again. So MVP-Delayed is the core's generic algorithm on these models, and
nothing else. `__init__.pyi` lists all names.
"""

import importlib.abc
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from pkd import lazy

__getattr__, __all__ = lazy.attach(__name__, __file__)


def __dir__() -> list[str]:
    return __all__


class _Registrar(importlib.abc.MetaPathFinder):
    """Registers the ids of late environments when somebody imports Gymnasium.

    `import pkd_delay` must not import Gymnasium, which takes time and may not be there.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_register(module: ModuleType) -> None:
                run(module)
                importlib.import_module("pkd_delay.envs")

            spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec


if "gymnasium" in sys.modules:
    importlib.import_module("pkd_delay.envs")
else:
    sys.meta_path.insert(0, _Registrar())
