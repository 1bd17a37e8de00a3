"""pkd_delay: planning and learning when states are shown late, as an adapter of `pkd`.

`DelayedMDP` is a tabular MDP with random delays, and `Delayed` is any problem with them.
`KnownDelay` and `UnknownDelay` turn a partially known MDP into its delayed version, which is a
partially known MDP again. So MVP-Delayed is the core's generic algorithm on these models, and
nothing else. `__init__.pyi` lists all names.
"""

import sys
from importlib import import_module

from pkd import lazy

__getattr__, __all__ = lazy.attach(__name__, __file__)


def __dir__() -> list[str]:
    return __all__


# `gymnasium.make("pkd_delay:...")` imports this package to register its ids. Where Gymnasium is not
# there yet, nobody asks, and importing it would cost time.
if "gymnasium" in sys.modules:
    import_module("pkd_delay.envs")
