"""HTML from the templates beside this module; every text is escaped there, so that it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import attrs

from pkd.show.tables import is_numeric

if TYPE_CHECKING:
    from jinja2 import Environment

EMPTY = ("", "None")


@attrs.frozen
class Table:
    """A table of texts; a wide one becomes a list of cards on a narrow screen."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    wide: bool = False

    @property
    def numeric(self) -> list[bool]:
        """Whether each column stands to the right."""
        return [is_numeric([row[i] for row in self.rows]) for i in range(len(self.headers))]


@attrs.frozen
class Picture:
    """An <svg>, what it shows for those who cannot see it, and what stands below."""

    svg: str
    says: str
    caption: str = ""


def make_table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", *, wide: bool = False
) -> Table:
    """A table without the columns that are empty everywhere.

    >>> make_table(["x", "y"], [["1", ""], ["2", "None"]]).headers
    ['x']
    """
    rows = list(rows)
    kept = [i for i in range(len(headers)) if any(row[i] not in EMPTY for row in rows)]
    chosen = [[row[i] for i in kept] for row in rows]
    return Table([headers[i] for i in kept], chosen, caption, wide)


def render(template: str, **values: Any) -> str:
    """The text of a template with these values."""
    return _load().get_template(template).render(values)


@cache
def _load() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("pkd.show"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
