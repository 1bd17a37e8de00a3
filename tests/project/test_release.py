"""What a release needs: metadata that is true, complete archives, and an installation that runs."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import pkd

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = ("pkd", "pkd_delay", "pkd_examples")
PAPER = "2603.03480"


def sources() -> set[str]:
    """Every file that an installation must have."""
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_typed_for_its_users(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()
    assert "py.typed" in PROJECT["tool"]["setuptools"]["package-data"][package]


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert PROJECT["project"]["version"] == pkd.__version__
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == pkd.__version__  # type: ignore[index]


def test_the_paper_is_cited_with_year_venue_and_identifier() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    preferred = citation.split("preferred-citation:")[1]
    for text in (preferred, (ROOT / "docs/project/citing.md").read_text(encoding="utf-8")):
        assert PAPER in text
        assert "2026" in text
        assert "International Conference on Machine Learning" in text
    assert PROJECT["project"]["urls"]["Paper"].endswith(f"/{PAPER}")


def test_hosted_runs_call_the_same_script() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert "run: bash .ci/run" in workflow
    for script in (".ci/run", ".ci/pythons"):
        assert (ROOT / script).is_file()


def test_kernels_and_nothing_else_are_left_out_of_the_coverage() -> None:
    """A compiled function is left out by its decorator, and no file as a whole."""
    settings = PROJECT["tool"]["coverage"]
    assert settings["run"]["branch"]
    assert settings["report"]["fail_under"] >= 95
    assert "omit" not in settings["run"]
    pattern = re.compile(settings["report"]["exclude_also"][0])
    for path in (ROOT / name for name in sources() if name.endswith(".py")):
        text = path.read_text(encoding="utf-8")
        decorated = re.findall(r"^\s*(@.*jit.*|@.*inner.*)$", text, re.MULTILINE)
        assert all(pattern.search(line) for line in decorated), path
        if "kernels" in path.name:
            functions = re.findall(r"^def ", text, re.MULTILINE)
            assert len(decorated) == len(functions), path


def test_the_tests_of_hosted_runs_measure_the_coverage() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "make test TEST_OPTIONS=" in script
    assert "--cov" in script


def test_the_oldest_python_is_the_one_that_is_checked() -> None:
    assert PROJECT["project"]["requires-python"] == ">=3.11"
    assert PROJECT["tool"]["mypy"]["python_version"] == "3.11"
    assert PROJECT["tool"]["ruff"]["target-version"] == "py311"
    script = (ROOT / ".ci/pythons").read_text(encoding="utf-8")
    named = {c.rpartition(" ")[2] for c in PROJECT["project"]["classifiers"] if ":: 3." in c}
    assert named <= set(re.search(r"PYTHONS:-([\d. ]+)", script)[1].split())  # type: ignore[index]


def test_python_runs_the_package_as_the_command_line() -> None:
    words = [sys.executable, "-m", "pkd", "--version"]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said == f"pkd {pkd.__version__}\n"


@pytest.mark.slow
def test_archives_are_complete_and_install_in_a_clean_environment(tmp_path: Path) -> None:
    """The source archive is built, the wheel from it, and the wheel is installed and used."""

    def python(name: str) -> str:
        venv.create(tmp_path / name, with_pip=True)
        folder = "Scripts" if sys.platform == "win32" else "bin"
        return str(tmp_path / name / folder / "python")

    def run(*words: str) -> str:
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    builder, dist = python("builder"), tmp_path / "dist"
    run(builder, "-m", "pip", "install", "-q", "build")
    run(builder, "-m", "build", "--outdir", str(dist), str(ROOT))
    (archive,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    with tarfile.open(archive) as packed:
        held = {name.partition("/")[2] for name in packed.getnames()}
    assert sources() | {"README.md", "LICENSE", "pyproject.toml"} <= held
    with zipfile.ZipFile(wheel) as packed_wheel:
        names = {name for name in packed_wheel.namelist() if ".dist-info/" not in name}
    assert names == sources()
    user = python("user")
    run(
        user,
        "-m",
        "pip",
        "install",
        "-q",
        "--constraint",
        str(ROOT / "constraints.txt"),
        str(wheel),
    )
    assert run(user, "-m", "pkd", "--version") == f"pkd {pkd.__version__}\n"
    where = run(user, "-c", "import pkd, pkd_delay, pkd_examples; print(pkd.__file__)")
    assert Path(where.strip()).is_relative_to(tmp_path)
    assert "9.1" in run(user, "-m", "pkd", "plan", "two_state_chain", "--delay", "1")


def run_script(name: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    shell = ["bash"] if name == "pythons" else [sys.executable]
    command = [*shell, str(ROOT / ".ci" / name), *words]
    env = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


@pytest.mark.skipif(sys.platform == "win32", reason="a script for bash")
def test_a_missing_interpreter_is_a_failure() -> None:
    done = run_script("pythons", PYTHONS="3.99")
    assert done.returncode == 1
    assert "3.99  FAILED: no such interpreter" in done.stdout


def test_a_tag_must_name_the_one_version() -> None:
    done = run_script("check_tag", "v99.0.0")
    assert done.returncode == 1
    assert "the tag says 99.0.0" in done.stderr


def test_links_of_the_readme_work_on_the_page_of_an_index(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(
        "![plot](docs/a.png) [log](CHANGELOG.md) [paper](https://arxiv.org/x) [up](#up)"
    )
    done = run_script("absolute_links", str(page), "https://host/one/pkd", "v1.2.3")
    assert done.returncode == 0
    assert page.read_text() == (
        "![plot](https://host/one/pkd/raw/v1.2.3/docs/a.png) "
        "[log](https://host/one/pkd/blob/v1.2.3/CHANGELOG.md) "
        "[paper](https://arxiv.org/x) [up](#up)"
    )


def test_the_release_tries_the_wheel_on_every_system_and_needs_no_token() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    for system in ("ubuntu", "macos", "windows"):
        assert f"{system}-latest" in text
    assert "id-token: write" in text
    assert "password" not in text
    assert "pkd verify" in text
