"""What a run leaves behind: its record (`run`), files (`files`), pictures and the HTML page.

The names of `__all__` write and read files for every package: whole or not at all.
"""

from pkd.results.files import read_npz, replacing, write_csv, write_npz, write_text

__all__ = ["read_npz", "replacing", "write_csv", "write_npz", "write_text"]
