"""Defects that hostile testing once found, as edits of the source: `--defect` puts one back.

The net is worth something only if it finds them again. An edit is made while the module is
imported, and the files stay as they are. An edit that no longer fits the source is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

import attrs

__all__ = ["DEFECTS", "Defect", "put_back"]

Edits = dict[str, list[tuple[str, str]]]  # module: (what the source says, what it said)


@attrs.frozen
class Defect:
    """A defect, the campaign that must find it, and the edits that put it back."""

    says: str
    campaign: str
    edits: Edits


DEFECTS = {
    "1": Defect(
        "what a file says is not checked against the model",
        "files",
        {
            "pkd.results.saved": [
                ("    compiled.check_policy(choices)\n", ""),
                ("if run.fingerprint and run.fingerprint !=", "if False and run.fingerprint !="),
            ],
            "pkd.planning": [
                ('if meta.get("fingerprint") != compiled.fingerprint:', "if False:"),
                ('            compiled.check_policy(arrays["choices"])\n', ""),
            ],
            "pkd.learner": [('if meta.get("fingerprint") != compiled.fingerprint:', "if False:")],
            "pkd.algorithm": [('        self.compiled.check_policy(arrays["policy"])\n', "")],
        },
    ),
    "2": Defect(
        "calls of the engine for large models share their memory",
        "threads",
        {"pkd.engine.stripes.sweeps": [("memory = self._free.pop()", "memory = self._free[-1]")]},
    ),
    "3": Defect(
        "the identity of a checkpoint leaves out the law, |Z|, B and the shares",
        "runs",
        {
            "pkd.learning": [
                (
                    '"run": digest.hexdigest(), "optimum": optimum, **config}',
                    '"run": str(self.compiled.horizon), **config}',
                )
            ]
        },
    ),
    "4": Defect(
        "flatten takes rewards below 1e-12 for equal",
        "models",
        {
            "pkd.flattening": [
                ("all(a.reward == b.reward for", "all(abs(a.reward - b.reward) <= 1e-12 for"),
                ("if whole == 0.0:", "if abs(whole) <= 1e-12:"),
            ]
        },
    ),
    "5": Defect(
        "whole numbers as constants of a rule reach the compiler",
        "runs",
        {
            "pkd.engine.compiled": [
                (
                    "c1, c2, free = float(bonus.c1), float(bonus.c2), float(bonus.free)",
                    "c1, c2, free = bonus.c1, bonus.c2, float(bonus.free)",
                )
            ]
        },
    ),
    "6": Defect(
        "branches to one queue of one letter overwrite each other",
        "models",
        {
            "pkd.engine.stripes.table": [
                ("p = cells.p[k] + (0.0 if before is None else before.p)", "p = cells.p[k]")
            ]
        },
    ),
    "7": Defect(
        "probabilities that sum to 1 +- 1e-9 are used as they are",
        "models",
        {
            "pkd.model": [
                (
                    "return found if abs(total - 1) <= ROUNDING else [p / total for p in found]",
                    "return found",
                ),
            ],
            "pkd.explore.reader": [("p_list[k] /= total", "pass")],
        },
    ),
}


def put_back(name: str) -> None:
    """Makes a defect part of this process; none of its modules may be imported yet."""
    edits = DEFECTS[name].edits
    early = edits.keys() & sys.modules.keys()
    assert not early, f"imported too early: {sorted(early)}"
    sys.meta_path.insert(0, _Finder(edits))


class _Finder(MetaPathFinder):
    def __init__(self, edits: Edits) -> None:
        self.edits = edits

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path) if fullname in self.edits else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin, self.edits[fullname])
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, edits: list[tuple[str, str]]) -> None:
        super().__init__(name, path)
        self.edits = edits

    def get_code(self, fullname: str) -> Any:
        """The code of the edited source; the cache of Python's own is not used."""
        text = self.get_data(self.path).decode()
        for now, before in self.edits:
            assert text.count(now) == 1, f"{self.path} no longer says {now!r}"
            text = text.replace(now, before)
        return compile(text, self.path, "exec", dont_inherit=True)
