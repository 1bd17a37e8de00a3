"""Figures of matplotlib inside a page: the SVG as matplotlib writes it, after the XML prologue."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pkd.show.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """A new figure of so many inches, in the style of the page; draw and save it in the `with`."""
    import matplotlib
    from cycler import cycler
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {
        "axes.grid": True,
        "axes.prop_cycle": cycler(color=COLOURS),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "font.size": 9,
        "grid.alpha": 0.15,
        "grid.color": "black",
        "legend.frameon": False,
        "legend.fontsize": 8,
        "svg.fonttype": "none",  # text stays text
    }
    with matplotlib.rc_context(style):
        yield Figure(figsize=(width, height), layout="constrained")


def inline(figure: Figure, salt: str) -> str:
    """The figure as an <svg> element; salt: different for each figure of a page."""
    import matplotlib

    file, none = io.StringIO(), dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with matplotlib.rc_context({"svg.hashsalt": salt}):
        figure.savefig(file, format="svg", metadata=none)
    drawn = file.getvalue()
    return drawn[drawn.index("<svg") :]
