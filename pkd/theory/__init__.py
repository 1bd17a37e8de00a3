"""The paper's theorems as numbers: bounds, the lemmas of the proof, facts for `pkd verify`."""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from pkd.lazy import submodules

    __getattr__ = submodules(__name__)
