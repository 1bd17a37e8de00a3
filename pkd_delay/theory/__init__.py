"""The theory of delays as code: hard instances, l1 estimation, priors, hardness, POMDPs."""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from pkd.lazy import submodules

    __getattr__ = submodules(__name__)
