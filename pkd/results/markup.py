"""The HTML of a page: its style, its tables, and text that is never markup."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

__all__ = ["STYLE", "escape", "table"]

STYLE = """:root{color-scheme:light dark;--ink:#1a1a1a;--paper:#fff;--soft:#5a5a5a;--rule:#d8d8d8}
@media (prefers-color-scheme: dark){
:root{--ink:#e8e8e8;--paper:#16181c;--soft:#a8a8a8;--rule:#3a3e45}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
main{max-width:64rem;margin:0 auto;padding:1rem}
h1{font-size:1.6rem;line-height:1.2}
h2{font-size:1.25rem;line-height:1.3;margin:2.5rem 0 .5rem}
h2{border-top:1px solid var(--rule);padding-top:1rem}
h3{font-size:1rem;margin:1.5rem 0 .3rem}
h1,h2,h3,dd{overflow-wrap:anywhere}td{overflow-wrap:break-word}
p{margin:.4rem 0}.soft,figcaption,caption{color:var(--soft);font-size:.9rem}
figure{margin:1rem 0}caption{text-align:left;padding-bottom:.3rem}
dl{display:grid;grid-template-columns:minmax(7rem,auto) 1fr;gap:.15rem 1rem;margin:.5rem 0}
dt{color:var(--soft)}dd{margin:0}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;padding:.25rem .9rem .25rem 0}
th,td{border-bottom:1px solid var(--rule)}
th{font-weight:600}td.n,th.n{text-align:right}.scroll{overflow-x:auto}summary{cursor:pointer}
@media (max-width:40rem){dl{grid-template-columns:2fr 3fr}
table.wide thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}
table.wide,table.wide tbody,table.wide tr,table.wide td,table.wide caption{display:block}
table.wide,table.wide tbody,table.wide tr,table.wide td,table.wide caption{width:100%}
table.wide tr{border-bottom:2px solid var(--rule);padding:.5rem 0}
table.wide td,table.wide td.n{display:flex;justify-content:space-between;gap:1rem}
table.wide td,table.wide td.n{border:0;padding:.1rem 0;text-align:right}
table.wide td::before{content:attr(data-label);color:var(--soft);text-align:left}
table.wide td::before{flex:none;max-width:50%}
table.wide td:empty{display:none}}"""


def table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], caption: str, *, wide: bool = False
) -> str:
    """A table of texts; a wide one becomes a list of cards on a narrow screen and keeps its roles
    there.
    """
    kept = [list(row) for row in rows]
    right = [all(_is_number(row[i]) for row in kept) for i in range(len(headers))]
    sides = ['class="n" ' if one else "" for one in right]
    head = "".join(
        f'<th {side}scope="col" role="columnheader">{escape(name)}</th>'
        for name, side in zip(headers, sides, strict=True)
    )
    body = "".join(
        '<tr role="row">'
        + "".join(
            f'<td {side}role="cell" data-label="{escape(name)}">{escape(cell)}</td>'
            for name, side, cell in zip(headers, sides, row, strict=True)
        )
        + "</tr>"
        for row in kept
    )
    return (
        f'<div class="scroll"><table role="table"{" class=wide" if wide else ""}>'
        f"<caption>{escape(caption)}</caption>"
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div>'
    )


def escape(value: str) -> str:
    """A text that a browser shows as it is."""
    return html.escape(value)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "") or "0")
    except ValueError:
        return False
    return True
