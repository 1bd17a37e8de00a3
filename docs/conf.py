"""How the pages are built: Sphinx with furo, Markdown by MyST, tutorials executed.

`make docs` turns warnings into errors. Nothing is fetched while a page is built or read: MathJax
comes from a Python package and is copied beside the pages as one file.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pkd

sys.path.insert(0, str(Path(__file__).parent / "_ext"))


def mathjax_file() -> Path:
    """The one file of MathJax that the pages load: TeX in, SVG out, glyphs included."""
    found = find_spec("sphinx-mathjax-offline")
    if found is None or found.origin is None:
        raise RuntimeError(
            "sphinx-mathjax-offline is not installed, and formulas need it; "
            "run `make docs`, or pip install '.[docs]'"
        )
    return Path(found.origin).parent / "static" / "mathjax" / "tex-svg.js"


project = "pkd"
author = "The pkd developers"
project_copyright = "2026, The pkd developers"
release = pkd.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "live_pages",
]
exclude_patterns = ["_build", "_gallery", "jupyter_execute"]
# Functions in this file cannot be cached, and need not be. pkd and pkd_examples both have a class
# Problem, which signatures name without its package.
suppress_warnings = ["config.cache", "ref.python"]
# Links into the pages of other projects need the network, so only hosted builds make them.
if os.environ.get("PKD_LINKS"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "gymnasium": ("https://gymnasium.farama.org/", None),
        "numpy": ("https://numpy.org/doc/stable/", None),
        "pandas": ("https://pandas.pydata.org/docs/", None),
        "python": ("https://docs.python.org/3/", None),
        "scipy": ("https://docs.scipy.org/doc/scipy/", None),
    }
html_theme = "furo"
html_title = f"pkd {release}"
html_static_path = ["_static/site.css", "_static/copy.js", str(mathjax_file())]
html_css_files = ["site.css"]
html_js_files = ["copy.js"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
mathjax_path = "tex-svg.js"

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 900  # the first page may have to compile every kernel on a busy machine
nb_execution_in_temp = True  # a tutorial may write files
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"


def plain_docstring(
    app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]
) -> None:
    """Docstrings are plain text: an indented block is an equation; |Z| is no markup."""
    written: list[str] = []
    inside = False
    if what in ("function", "method"):
        lines[:] = list_parameters(lines, item)
    for line in lines:
        indented = line.startswith("    ")
        if indented and not inside and not "".join(written[-1:]).strip():
            written += [".. code-block:: text", ""]
        inside = indented or (inside and not line.strip())
        example = line.startswith((">>>", "..."))
        written.append(
            line
            if indented or example
            else line.replace("|", r"\|").replace("*", r"\*").replace("`", "``")
        )
    lines[:] = written


def list_parameters(lines: list[str], function: Any) -> list[str]:
    """Sentences such as `seed: the same one gives the same bits.` as a list of parameters."""
    try:
        names = "|".join(map(re.escape, inspect.signature(function).parameters))
    except (TypeError, ValueError):
        return lines
    start = rf"(?:^|(?<=\. ))((?:{names})(?:, (?:{names}))*): "
    written: list[str] = []
    for paragraph in "\n".join(lines).split("\n\n"):
        plain = not paragraph.startswith((" ", ">>>", "-")) and names
        before, *found = re.split(start, " ".join(paragraph.split("\n"))) if plain else [paragraph]
        if not found:
            written += [*paragraph.split("\n"), ""]
            continue
        written += [before.strip(), ""] * bool(before.strip())
        for told, text in zip(found[::2], found[1::2], strict=True):
            written += [f":param {name}: {text.strip()}" for name in told.split(", ")]
        written.append("")
    return written


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", plain_docstring)
