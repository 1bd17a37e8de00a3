"""Tables as text: aligned for a terminal, Markdown for a page, LaTeX for a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pkd.expect import one_of, require

__all__ = ["FORMS", "Cell", "format_number", "format_table", "is_numeric"]

Cell = str | int | float
FORMS = ("plain", "markdown", "latex")
_SPECIAL = re.compile(r"[&%$#_{}~^\\<>±]")
_LATEX = {
    "±": r"$\pm$", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
}  # fmt: skip


def format_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    form: str = "plain",
    *,
    most: int | None = None,
) -> str:
    """Columns under their headers; numbers to the right, words to the left.

    most: lines that are shown; the last line then counts the others.

    >>> print(format_table(["city", "size"], [["Bern", 134], ["Ulm", 7.5]], "markdown"))
    | city | size |
    | ---- | ---: |
    | Bern |  134 |
    | Ulm  |  7.5 |
    """
    require(one_of("form", form, FORMS))
    cells = [[format_number(value) for value in row] for row in rows]
    if most is not None and len(cells) > most:
        rest = f"... {len(cells) - most:,} more"
        return f"{format_table(headers, cells[:most], form)}\n{rest}"
    right = [is_numeric([row[i] for row in cells]) for i in range(len(headers))]
    lines = [list(headers), *cells]
    if form == "latex":
        return _write_latex(lines, right)
    if form == "markdown":
        lines = [[cell.replace("|", r"\|") for cell in line] for line in lines]
    least = 4 if form == "markdown" else 0
    widths = [max(least, *(len(line[i]) for line in lines)) for i in range(len(headers))]
    aligned = [
        [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)]
        for line in lines
    ]
    if form == "plain":
        return "\n".join("  ".join(line).rstrip() for line in aligned)
    rule = ["-" * (w - 1) + ":" if r else "-" * w for w, r in zip(widths, right, strict=True)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [aligned[0], rule, *aligned[1:]])


def format_number(value: Cell) -> str:
    """A number with seven digits that matter, anything else as it is."""
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _write_latex(lines: list[list[str]], right: list[bool]) -> str:
    """A tabular with the rules of the package booktabs."""
    body = [" & ".join(_escape(cell) for cell in line) + r" \\" for line in lines]
    columns = "".join("r" if one else "l" for one in right)
    head, foot = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return "\n".join([head, r"\toprule", body[0], r"\midrule", *body[1:], r"\bottomrule", foot])


def _escape(cell: str) -> str:
    def write(found: re.Match[str]) -> str:
        sign = found[0]
        return f"${sign}$" if sign in "<>" else _LATEX.get(sign, f"\\{sign}")

    return _SPECIAL.sub(write, cell)


def is_numeric(column: Sequence[str]) -> bool:
    """Whether a column holds numbers.

    "> 200", "1,000", "429 ± 67" and "2 (few)" are numbers; nothing, "few" and "never" may stand
    among them.
    """
    cells = [re.sub(r" ±.*| \(few\)|,", "", cell) for cell in column]
    cells = [cell for cell in cells if cell not in ("", "few", "never")]
    return bool(cells) and all(_is_number(cell.removeprefix("> ").rstrip("%")) for cell in cells)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
