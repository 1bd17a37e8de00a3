"""Files of every package: written whole or not at all, read without pickle.

`atomic` writes and reads, `values` says how values of a model are kept, `policies` are tables of
actions, `logs` are CSV logs.
"""

from pkd.files.atomic import read_npz, replacing, write_csv, write_npz, write_text
from pkd.files.policies import (
    Row,
    StateView,
    state_views,
    write_policy_csv,
    write_policy_json,
)

__all__ = [
    "Row",
    "StateView",
    "read_npz",
    "replacing",
    "state_views",
    "write_csv",
    "write_npz",
    "write_policy_csv",
    "write_policy_json",
    "write_text",
]
