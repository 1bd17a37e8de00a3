"""One HTML page for people: of the folder of an experiment, or of saved runs.

`content` reads runs, `figures` draws them, `structure` describes each model, and `page` fills the
template `report.html` in `pkd/show/templates`.
"""

from pkd.report.content import Content, read_folder, read_runs
from pkd.report.page import write_page

__all__ = ["Content", "read_folder", "read_runs", "write_page"]
