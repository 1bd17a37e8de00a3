"""One HTML page for people: of an experiment, of saved runs, or of what commands found.

`content` reads runs, `figures` draws them, `structure` describes each model, and `page` fills the
template `report.html` in `pkd/show/templates`.
"""

from pkd.report.content import Content, read_folder, read_runs
from pkd.report.decision import Findings, make_findings, read_findings, write_decision
from pkd.report.page import write_page

__all__ = [
    "Content",
    "Findings",
    "make_findings",
    "read_findings",
    "read_folder",
    "read_runs",
    "write_decision",
    "write_page",
]
