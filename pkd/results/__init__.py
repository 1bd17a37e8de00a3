"""What a run leaves behind: its record (`run`), files (`files`), pictures and the HTML page.

The names of `__all__` write and read files for every package: whole or not at all.
"""

from pkd.results.files import read_npz, replacing, write_csv, write_npz, write_text
from pkd.results.policies import Row, write_policy_csv, write_policy_json

__all__ = [
    "Row",
    "read_npz",
    "replacing",
    "write_csv",
    "write_npz",
    "write_policy_csv",
    "write_policy_json",
    "write_text",
]
