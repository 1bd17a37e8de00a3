"""Files of this package: the core's atomic writer and checked reader, imported in one place."""

from __future__ import annotations

from pkd.storage import read_npz, write_npz, write_text

__all__ = ["read_npz", "write_npz", "write_text"]
