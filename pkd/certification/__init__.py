"""What data prove: sets of laws, certificates, logs, fitted laws, exploration."""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from pkd.lazy import submodules

    __getattr__ = submodules(__name__)
