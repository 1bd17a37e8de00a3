"""Figures of matplotlib as SVG inside a page: their colours follow the page, light or dark, and
they say in words what they show.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CSS", "INK", "PAPER", "STAND_INS", "drawing", "inline"]

INK = "#000000"
PAPER = "#fffffe"  # the background of the page, where a label must cover a line
# Stand-ins that the page's colours replace. A line keeps its colour and changes its dashes when
# there are more lines than colours.
STAND_INS = [f"#0000f{i}" for i in range(1, 7)]
LIGHT = ("#0b62a8", "#c2410c", "#15803d", "#8b2fb0", "#a16207", "#0e7490")
DARK = ("#6cb4f5", "#fb923c", "#4ade80", "#d48bf0", "#facc15", "#22d3ee")


def _variables(colours: tuple[str, ...]) -> str:
    return (
        ":root{"
        + ";".join(f"--line-{i}:{colour}" for i, colour in enumerate(colours, start=1))
        + "}"
    )


CSS = f"""{_variables(LIGHT)}
@media (prefers-color-scheme: dark){{{_variables(DARK)}}}
svg{{display:block;width:100%;height:auto;max-width:44rem}}
svg *{{stroke-linejoin:round}}
svg text{{fill:currentColor;font-family:system-ui,sans-serif!important}}"""


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """A new figure of so many inches, in the style of the page. What it holds must be drawn inside
    the `with`.
    """
    import matplotlib
    from cycler import cycler
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {
        "axes.facecolor": "none",
        "axes.grid": True,
        "axes.prop_cycle": cycler(linestyle=["-", "--", ":"]) * cycler(color=STAND_INS),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "figure.facecolor": "none",
        "font.size": 9,
        "grid.alpha": 0.15,
        "grid.color": INK,
        "legend.frameon": False,
        "legend.fontsize": 8,
        "svg.fonttype": "none",
    }
    with matplotlib.rc_context(style):
        yield Figure(figsize=(width, height), layout="constrained")


def inline(figure: Figure, says: str, salt: str) -> str:
    """The figure as an <svg> element; `says`: what it shows, for those who cannot see it; `salt`:
    different for each figure of a page.
    """
    import matplotlib

    file = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        figure.savefig(
            file,
            format="svg",
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    drawn = file.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(
        r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", "", drawn, flags=re.DOTALL
    )
    drawn = re.sub(r' (?:width|height)="[\d.]+pt"| xmlns\S*="[^"]*"| version="1.1"', "", drawn)
    used = set(re.findall(r"#([\w-]+)", drawn))
    drawn = re.sub(r' id="([\w.-]+)"', lambda found: found[0] if found[1] in used else "", drawn)
    drawn = drawn.replace("xlink:href", "href").replace(INK, "currentColor")
    drawn = drawn.replace(PAPER, "var(--paper)")
    for i, stand_in in enumerate(STAND_INS, start=1):
        drawn = drawn.replace(stand_in, f"var(--line-{i})")
    # Hundredths of a point are more than a screen shows.
    drawn = re.sub(r"(\.\d\d)\d+", r"\1", drawn)
    return re.sub(r"\n\s*", "\n", drawn).replace(
        "<svg", f'<svg role="img" aria-label="{html.escape(says)}"', 1
    )
