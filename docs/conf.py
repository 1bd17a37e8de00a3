"""How the pages are built: Sphinx with furo, Markdown by MyST, tutorials executed; `make docs` turns warnings into errors."""

from __future__ import annotations

from typing import Any

import pkd

project = "pkd"
author = "The pkd developers"
project_copyright = "2026, The pkd developers"
release = pkd.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
exclude_patterns = ["_build", "jupyter_execute"]
html_theme = "furo"
html_title = f"pkd {release}"

myst_enable_extensions = ["amsmath", "dollarmath", "deflist"]
myst_heading_anchors = 3

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120

autodoc_member_order = "bysource"
autodoc_typehints = "signature"


def plain_docstring(app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text: an indented block is an equation, and |Z| or P(s'|s, a) are no markup."""
    written: list[str] = []
    inside = False
    for line in lines:
        indented = line.startswith("    ")
        if indented and not inside and not "".join(written[-1:]).strip():
            written += ["::", ""]
        inside = indented or (inside and not line.strip())
        example = line.startswith((">>>", "..."))
        written.append(line if indented or example else line.replace("|", r"\|").replace("*", r"\*").replace("`", "``"))
    lines[:] = written


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", plain_docstring)
