"""What people look at: text tables, figures, notebook views."""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from pkd.lazy import submodules

    __getattr__ = submodules(__name__)
