"""Many runs: agents, grids of runs, where results are kept, and who computes them."""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from pkd.lazy import submodules

    __getattr__ = submodules(__name__)
