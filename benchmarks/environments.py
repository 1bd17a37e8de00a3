"""Environments of peers that cannot live beside pkd, each built once in a cache folder.

rlberry 0.6 and rlberry-scool need an old numpy and an old Gymnasium. mdpax asks for jax with CUDA,
which is gigabytes: it is installed without its dependencies, then with jax for the CPU. Each takes
about 650 MB.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["CACHE", "find_python"]

CACHE = Path.home() / ".cache" / "pkd-benchmarks"
OLD = ["numpy==1.26.4", "gymnasium==0.29.1", "numba"]
PLAIN = ["adastop", "dill", "docopt", "imageio", "matplotlib", "pandas", "pyyaml", "scipy"]
PLAIN += ["seaborn", "tqdm"]
# Name -> (packages without their dependencies, packages with them).
NEEDS = {
    "rlberry-0.6": ([], ["rlberry==0.6.0", *OLD]),
    "rlberry-scool": (
        ["rlberry-scool==0.7.3", "rlberry==0.7.3"],
        [*OLD, *PLAIN],
    ),
    "mdpax": (
        ["mdpax==0.2.2"],
        ["jax", "chex", "hydra-core", "jaxtyping", "loguru", "numpyro", "orbax-checkpoint"],
    ),
}


def find_python(name: str, cache: Path = CACHE) -> Path | str:
    """A Python with a peer, built the first time; or why there is none."""
    home = cache / name
    python, ready = home / "bin" / "python", home / "ready"
    if not ready.exists():
        alone, whole = NEEDS[name]
        print(f"building an environment with {', '.join([*alone, *whole])} in {home}", flush=True)
        venv.create(home, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet"]
        for words in (["--no-deps", *alone], whole) if alone else (whole,):
            done = subprocess.run([*install, *words], stderr=subprocess.PIPE, text=True)
            if done.returncode:
                print(done.stderr, file=sys.stderr)
                return "skipped: pip could not install it"
        ready.touch()
    return python
