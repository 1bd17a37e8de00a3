"""Files of this package: the core's atomic writer and checked reader, imported in one place."""

from __future__ import annotations

from pkd import results

__all__ = ["read_npz", "write_npz", "write_text"]


read_npz, write_npz, write_text = results.read_npz, results.write_npz, results.write_text
