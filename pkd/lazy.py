"""Names of a package that are imported when they are first used, so that `import pkd` is quick.

The list is the package's `__init__.pyi`, which type checkers read as well: one line for each name,
`from module import name as name`, and `import module` for each module that users reach by its path.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["Heavy", "attach", "submodules"]


def attach(package: str, file: str) -> tuple[Callable[[str], Any], list[str]]:
    """`__getattr__` of a package, and the names that its stub lists.

    >>> find, names = attach("pkd", __file__.replace("lazy", "__init__"))
    >>> find("sure"), "sure" in names
    (<function sure at ...>, True)
    """
    text = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    lines = (line.split() for line in text.splitlines() if line.startswith("from "))
    homes = {name: home for _, home, _, name, *_ in lines}
    find_module = submodules(package)

    def find(name: str) -> Any:
        if name not in homes:
            return find_module(name)
        if homes[name] == package:
            return import_module(f"{package}.{name}")
        home = import_module(homes[name])
        value = getattr(home, name, None) or import_module(f"{homes[name]}.{name}")
        setattr(sys.modules[package], name, value)
        return value

    return find, sorted(homes)


def submodules(package: str) -> Callable[[str], Any]:
    """`__getattr__` of a package that imports its modules when they are first used."""

    def find(name: str) -> Any:
        module = f"{package}.{name}"
        if not name.startswith("_"):
            try:
                return import_module(module)
            except ModuleNotFoundError as error:
                if error.name != module:  # a module that this one needs
                    raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


class Heavy:
    """A heavy module that is imported when something of it is first used.

    >>> Heavy("math").floor(2.5)
    2
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)
