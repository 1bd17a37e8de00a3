"""One HTML page for people: of the folder of an experiment, or of saved runs.

`content` puts runs and records into one form, `numbers` formats them, `figures` draws one picture
for each model, `structure` shows the model itself, `details` lists every run, and `page` puts the
parts together.
"""

from pkd.report.content import Content, read_folder, read_runs
from pkd.report.page import write_page

__all__ = ["Content", "read_folder", "read_runs", "write_page"]
