"""A page for those who decide: what commands found, in plain words, in one file.

A command keeps what it found as *findings* in a JSON file: sentences, tables and a figure. A page
joins the findings of several commands, the answers first, then what to measure next.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from pkd import __version__
from pkd.files.atomic import DAMAGE, say, write_text
from pkd.model import ModelError
from pkd.show.markup import Table, make_table, render
from pkd.show.svg import inline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Findings", "list_words", "make_findings", "read_findings", "write_decision"]

KIND = "pkd findings"
TITLE = "What the data say"
MOST_ROWS = 40  # of one table
WORDS = {  # for readers who never heard of them
    "episode": "One run from its first step to its last one. Values are means over episodes.",
    "tick": "The time of one step, in which one decision is made.",
    "policy": "A rule that says what to do in each situation.",
    "optimum": "What the best policy earns, on average.",
    "robust": "The robust plan is the policy that earns most if the unknown laws are as bad as the "
    "data allow.",
    "confidence": "If all of this were repeated with new data many times, such statements would "
    "hold in at least that part of the cases.",
    "certified": "Proved from the data with the confidence that is stated, if the model is right.",
    "posterior": "Posterior draws are laws that fit the data about equally well. They show what is "
    "likely, and they guarantee nothing.",
    "feature": "A situation whose chances are not known and have to be learned.",
    "regret": "What learning has cost: the optimum less what was earned, summed over the episodes.",
    "violations": "How often a value that should lie above the optimum did not. A guarantee of 95% "
    "means that there are none in 95 of 100 runs.",
    "|Z|": "The number of unknown features: how many laws have to be learned.",
}


@attrs.frozen
class Findings:
    """What one command found; the first sentence is the answer."""

    title: str
    said: Sequence[str]
    tables: Sequence[Table] = ()
    figure: str = ""  # an <svg>
    shows: str = ""  # what the figure shows, for those who cannot see it
    next: Sequence[str] = ()  # what to measure or to do
    command: str = ""

    @property
    def image(self) -> str:
        """The figure as the address of an image, in which a browser runs and loads nothing."""
        return f"data:image/svg+xml;base64,{base64.b64encode(self.figure.encode()).decode()}"

    @property
    def wide(self) -> bool:
        """Whether a telephone must scroll the figure to show letters that can be read."""
        size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', self.figure)
        return size is not None and float(size[1]) > float(size[2])

    def write(self, path: str | Path) -> None:
        """Writes a JSON file, whole or not at all."""
        write_text(path, json.dumps({"kind": KIND, **attrs.asdict(self)}, indent=1) + "\n")


def make_findings(
    title: str,
    said: Iterable[str],
    tables: Iterable[tuple[str, Sequence[str], Iterable[Sequence[Any]]]] = (),
    *,
    figure: Figure | None = None,
    advice: Iterable[str] = (),
    command: str = "",
) -> Findings:
    """Findings from (caption, headers, rows) and a figure; long tables are cut.

    >>> found = make_findings("Stock", ["It is enough."], [("", ["left"], [[0.25]])])
    >>> found.tables[0].rows
    [['0.25']]
    """
    shown = []
    for caption, headers, rows in tables:
        cells = [[_write(cell) for cell in row] for row in rows]
        if len(cells) > MOST_ROWS:
            caption += f" The first {MOST_ROWS} of {len(cells):,} lines."
        shown.append(make_table(headers, cells[:MOST_ROWS], caption, wide=len(headers) > 3))
    svg = "" if figure is None else inline(figure, title)
    return Findings(title, list(said), shown, svg, title, list(advice), command)


def _write(cell: Any) -> str:
    """A number with four digits that matter."""
    return f"{cell:.4g}" if isinstance(cell, float) and abs(cell) < 10_000 else str(cell)


def read_findings(paths: Iterable[str | Path]) -> list[Findings]:
    """The findings of some files; one ModelError names all that are none."""
    found, problems = [], []
    for path in paths:
        try:
            told = json.loads(Path(path).read_text(encoding="utf-8"))
            if not isinstance(told, dict) or told.pop("kind", None) != KIND:
                raise ValueError(f"it is no JSON object of the kind {KIND!r}")
            tables = [Table(**{**one, "headers": list(one["headers"])}) for one in told["tables"]]
            for table in tables:
                if any(len(row) != len(table.headers) for row in table.rows):
                    raise ValueError("a table has rows of other lengths than its headers")
            found.append(_check(Findings(**{**told, "tables": tables})))
        except DAMAGE as problem:
            problems.append(f"{path} is no file that --findings wrote: {say(problem)}")
    if problems:
        raise ModelError(problems)
    return found


def _check(found: Findings) -> Findings:
    """Every text of a file must be one: a template shows anything."""
    texts = [found.title, found.figure, found.shows, found.command, *found.said, *found.next]
    for table in found.tables:
        texts += [table.caption, *table.headers, *(cell for row in table.rows for cell in row)]
    if not all(isinstance(text, str) for text in texts) or not found.said:
        raise ValueError("it has no sentences, or values that are no texts")
    return found


def write_decision(found: Sequence[Findings], title: str = "") -> str:
    """The page as text."""
    texts = " ".join(text for one in found for text in _list_texts(one))
    return render(
        "decision.html",
        title=title or TITLE,
        parts=found,
        next=list(dict.fromkeys(text for one in found for text in one.next)),
        words=list_words(texts),
        version=__version__,
    )


def _list_texts(one: Findings) -> list[str]:
    tables = [cell for table in one.tables for cell in (*table.headers, table.caption)]
    return [one.title, *one.said, *one.next, *tables]


def list_words(text: str) -> Mapping[str, str]:
    """The words that a text uses and that need an explanation.

    >>> list(list_words("The optimum of an episode"))
    ['episode', 'optimum']
    """
    return {word: said for word, said in WORDS.items() if word in text}
