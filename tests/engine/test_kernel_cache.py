"""The cache of compiled kernels is named by everything that is compiled into them."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from pkd.engine import jit

ENGINE = Path(jit.__file__).parent
KERNELS = [f for f in sorted(ENGINE.rglob("*.py")) if "@jit(" in f.read_text()]


def list_imported(file: Path) -> set[Path]:
    """The files of `pkd` from which a file imports names."""
    froms = [
        node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)
    ]
    modules = {node.module for node in froms if node.module and node.module.startswith("pkd.")}
    specs = [find_spec(module) for module in sorted(modules)]
    return {Path(spec.origin) for spec in specs if spec and spec.origin}


@pytest.mark.parametrize("file", KERNELS, ids=lambda file: str(file.relative_to(ENGINE)))
def test_every_file_that_a_kernel_file_imports_is_hashed(file: Path) -> None:
    """A number such as `HOEFFDING` is compiled into the kernel: its file must count, too."""
    assert list_imported(file) <= set(jit.list_sources())


def test_a_changed_number_of_a_rule_makes_a_new_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "pkd"
    (package / "engine").mkdir(parents=True)
    (package / "engine" / "kernels.py").write_text("from pkd.optimism import HOEFFDING")
    monkeypatch.setattr(jit, "PACKAGE", package)
    names = []
    for number in (3, 4):
        (package / "optimism.py").write_text(f"HOEFFDING = {number}")
        jit.cache_folder.cache_clear()
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
        names.append(jit.cache_folder())
    jit.cache_folder.cache_clear()
    assert names[0] != names[1]
