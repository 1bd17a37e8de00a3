"""Files of every package: written whole or not at all, read without pickle.

`atomic` writes and reads, `values` says how values of a model are kept, `policies` are tables of
actions, `logs` are CSV logs.
"""

from pkd.files.atomic import DAMAGE, read_npz, replacing, say, write_csv, write_npz, write_text
from pkd.files.frames import make_frame
from pkd.files.policies import (
    Row,
    StateView,
    list_policy,
    state_views,
    write_policy_csv,
    write_policy_json,
)
from pkd.files.values import decode, encode, index_values

__all__ = [
    "DAMAGE",
    "Row",
    "StateView",
    "decode",
    "encode",
    "index_values",
    "list_policy",
    "make_frame",
    "read_npz",
    "replacing",
    "say",
    "state_views",
    "write_csv",
    "write_npz",
    "write_policy_csv",
    "write_policy_json",
    "write_text",
]
