"""The cache of compiled kernels is named by everything that is compiled into them."""

from __future__ import annotations

import ast
import os
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


def test_a_kernel_of_another_file_has_its_content_in_the_name_of_its_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two versions of an adapter may be installed with the same size and the same time."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    file, names = tmp_path / "kernels.py", []
    for number in (3, 4):
        file.write_text(f"NUMBER = {number}", encoding="utf-8")
        jit.cache_folder.cache_clear()
        names.append(jit.cache_folder(str(file)))
    jit.cache_folder.cache_clear()
    assert names[0] != names[1]


@pytest.mark.skipif(os.name == "nt", reason="no owners and modes")
@pytest.mark.parametrize("attack", ["open to all", "a link"])
def test_a_cache_in_the_temporary_folder_that_others_can_write_is_not_used(
    attack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """numba unpickles what lies there: whoever can write it runs code as this user."""
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(jit.tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(Path, "expanduser", lambda self: Path("/proc/no/home"))
    (tmp_path / "tmp").mkdir()
    jit.cache_folder.cache_clear()
    mine = Path(jit.cache_folder())
    assert mine.parent == tmp_path / "tmp"
    assert mine.stat().st_mode & 0o077 == 0
    if attack == "a link":
        mine.rename(tmp_path / "elsewhere")
        mine.symlink_to(tmp_path / "elsewhere")
    else:
        mine.chmod(0o777)
    jit.cache_folder.cache_clear()
    other = Path(jit.cache_folder())
    jit.cache_folder.cache_clear()
    assert other != mine
