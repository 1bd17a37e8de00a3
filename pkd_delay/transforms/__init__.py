"""Transformers with laws of delay: late actions, missing observations, ignoring the delay."""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from pkd.lazy import submodules

    __getattr__ = submodules(__name__)
