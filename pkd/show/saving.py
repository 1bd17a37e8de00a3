"""Files of figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkd.model import ModelError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = ("eps", "jpeg", "jpg", "pdf", "pgf", "png", "ps", "svg", "svgz", "tif", "tiff", "webp")
# Fonts are embedded whole, as journals ask; text of an SVG is drawn, so that it needs no font.
EMBEDDED: dict[Any, Any] = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "path"}


def save_figure(figure: Figure, path: Path) -> None:
    """Writes a matplotlib figure, whole or not at all; the suffix says the format.

    A vector format has its fonts in it.
    """
    kind = path.suffix.removeprefix(".")
    if kind not in PICTURES:
        raise ModelError(f"{path}: expected a name that ends in one of {', '.join(PICTURES)}")
    import matplotlib

    from pkd.files.atomic import replacing  # it needs numpy, which a command's help does not

    with matplotlib.rc_context(EMBEDDED), replacing(path) as file:
        figure.savefig(file, format=kind, dpi=150)
