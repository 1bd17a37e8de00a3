"""The one reader of policies: of a plan, of a run, or of a table that pkd wrote."""

from __future__ import annotations

import zipfile
from pathlib import Path

from pkd.engine import compile
from pkd.files.atomic import read_npz
from pkd.files.policies import PolicyTable
from pkd.model import ModelError
from pkd.planning.plan import Model, Plan, Policy
from pkd.results.run import Run


def read_policy(path: str | Path, model: Model) -> Policy:
    """The policy of a file, whatever wrote it, for its model; anything else is a ModelError.

    >>> import pathlib, pkd, tempfile
    >>> from pkd.tables.coin import coin
    >>> file = pathlib.Path(tempfile.mkdtemp(), "policy.csv")
    >>> _ = pkd.plan(coin).to_csv(file)
    >>> read_policy(file, coin)
    <PolicyTable: 3 rows>
    """
    compiled = compile(model)
    if not zipfile.is_zipfile(path):
        return PolicyTable.read(path, compiled.model)
    if read_npz(path)[1].get("kind") == "Plan":
        return Plan.load(path, compiled)
    found = Run.load(path, compiled).policy
    if found is None:
        raise ModelError(f"{path} is a run without a policy; expected a policy that pkd wrote")
    return found
