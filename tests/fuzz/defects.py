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
            "pkd.planning.plan": [
                ('if meta.get("fingerprint") != compiled.fingerprint:', "if False:"),
                ('            compiled.check_policy(arrays["choices"])\n', ""),
            ],
            "pkd.learning.learner": [
                ('if meta.get("fingerprint") != compiled.fingerprint:', "if False:")
            ],
            "pkd.learning.algorithm": [
                ('        self.compiled.check_policy(arrays["policy"])\n', "")
            ],
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
            "pkd.learning.learn": [
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
            "pkd.planning.flatten": [
                ("rtol=1e-12, atol=0)", "rtol=0, atol=1e-12)"),
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
                    "c1=float(bonus.c1),\n            c2=float(bonus.c2),",
                    "c1=bonus.c1,\n            c2=bonus.c2,",
                )
            ]
        },
    ),
    "10": Defect(
        "a log of delays has only the states in which the agent acted",
        "models",
        {
            "pkd_delay.episodes": [
                ('"end": min(len(self.actions) + 1, self.horizon),', '"end": None,'),
                (
                    "for t in range(1, min(ended, self.horizon) + 1)",
                    "for t in range(1, min(len(self.actions), ended) + 1)",
                ),
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
    "8": Defect(
        "LateEnv keeps the info that the environment goes on writing into",
        "models",
        {
            "pkd_delay.envs.late_env": [
                (
                    "told = copy_value(info)",
                    "told = info",
                )
            ]
        },
    ),
    "9": Defect(
        "values that share their text are one value in the CSV file of a policy",
        "files",
        {
            "pkd.files.policies": [
                ("if None not in shown and len(shown) == len(found):", "if None not in shown:"),
                ("return None if unclear else {part:", "return {part:"),
                ("if other.step <= one.until and one.action != other.action:", "if False:"),
            ]
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
