"""Laws of delays in files: JSON that `pkd fit-delay` writes and `--inter-arrival FILE` reads.

    {"kind": "law of a delay", "form": "lags", "max_delay": 2,
     "laws": [{"state": null, "action": null, "probabilities": [0.5, 0.3, 0.2]}]}

`state` and `action` are null where all states and actions share the law. The probabilities are
those of Delta = -1, 0, ..., of the lags 0, 1, ..., or the rows of a chain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from pkd import ModelError, files
from pkd_delay.laws.kernel import FORMS, DelayKernel, OneOrMany

__all__ = ["SavedLaw", "read_law", "write_law"]

KIND = "law of a delay"


@attrs.frozen
class SavedLaw:
    """A law from a file, with the largest delay that it was fitted with."""

    law: OneOrMany
    max_delay: int | None
    form: str


@attrs.frozen
class _PairLaws:
    """Laws per (state, action), found by the text of both: a function (x, y, a) of the base."""

    laws: Mapping[tuple[str, str], DelayKernel]

    def __call__(self, x: Any, y: Any, a: Any) -> DelayKernel:
        for state in (str(x), str((x, y))):
            if (state, str(a)) in self.laws:
                return self.laws[state, str(a)]
        raise ModelError(
            f"the file has no law for the state {x!r} and the action {a!r}; "
            f"it has {', '.join(f'({s}, {b})' for s, b in list(self.laws)[:5])}, ..."
        )


def write_law(
    path: str | Path,
    laws: Mapping[Any, DelayKernel],
    max_delay: int | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Writes one law (under the key None) or laws per (state, action), whole or not at all."""
    rows = [
        dict(zip(("state", "action"), pair or (None, None), strict=True))
        | {"probabilities": law.to_table()}
        for pair, law in laws.items()
    ]
    form = next(iter(laws.values())).form
    content = {"kind": KIND, "form": form, "max_delay": max_delay, "laws": rows, **(more or {})}
    files.write_text(path, json.dumps(content, indent=1) + "\n")


def read_law(path: str | Path) -> SavedLaw:
    """The law of a file that `write_law` wrote, or that was written by hand in the same form.

    >>> import pathlib, pkd_delay, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "law.json")
    >>> write_law(file, {None: pkd_delay.Lags((0.5, 0.5))}, max_delay=1)
    >>> read_law(file)
    SavedLaw(law=Lags(probabilities=(0.5, 0.5)), max_delay=1, form='lags')
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        if content["kind"] != KIND:
            raise ValueError
        form, largest = content["form"], content["max_delay"]
        make: Any = FORMS[form]
        rows = [(row["state"], row["action"], row["probabilities"]) for row in content["laws"]]
        if not rows or (largest is not None and (type(largest) is not int or largest < 0)):
            raise ValueError
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ModelError(
            f"{path} is not a law of a delay; expected JSON as pkd fit-delay writes it: kind, form "
            f"({', '.join(FORMS)}), max_delay, laws"
        ) from None
    try:
        laws = {(state, action): make(table) for state, action, table in rows}
    except (ModelError, TypeError) as error:
        raise ModelError(f"{path}: {error}") from None
    shared = laws.get((None, None))
    if shared is not None:
        return SavedLaw(shared, largest, form)
    return SavedLaw(
        _PairLaws({(str(s), str(a)): law for (s, a), law in laws.items()}), largest, form
    )
