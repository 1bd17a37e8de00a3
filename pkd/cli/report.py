"""Makes one page of an experiment, or of saved runs: the question, the table, a figure per model;
or one of what other commands found, in plain words, for those who decide.

  pkd latency inventory --log sales.csv --sensor-price .5 --findings price.json
  pkd certify inventory --log sales.csv --findings proof.json
  pkd report price.json proof.json --title "A faster sensor?" --out decision.html
  pkd experiment riverswim
  pkd report out/riverswim --out riverswim.html
  pkd report run-*.npz --out inventory.html

The page is one file that asks for nothing outside. It shows each model that can be built again:
its sizes, its transition graph, whether exploration is needed, and the optimal policy.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pkd.cli.arguments import read_runs, writable
from pkd.cli.output import print_json
from pkd.model import ModelError

HELP = "make one HTML page of an experiment or of saved runs"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="WHAT",
        help="the folder of an experiment, files that pkd learn --save or Run.save wrote, or files "
        "of --findings",
    )
    parser.add_argument(
        "--out",
        type=writable,
        default=Path("report.html"),
        metavar="FILE",
        help="the page (default: report.html)",
    )
    parser.add_argument("--title", default="", help="the heading of a page of findings")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="import the module:object that a file names as its model",
    )


def run(args: argparse.Namespace) -> int:
    folders = [path for path in args.runs if Path(path).is_dir()]
    if folders and len(args.runs) > 1:
        raise ModelError(
            f"expected one folder, or files; found the folder {folders[0]} among "
            f"{len(args.runs)} words"
        )
    from pkd import report
    from pkd.files.atomic import write_text

    if all(path.endswith(".json") for path in args.runs):
        found = report.read_findings(args.runs)
        write_text(args.out, report.write_decision(found, args.title))
        print(f"{args.out}: the findings of {len(found)} command{'s' if len(found) > 1 else ''}")
        return 0
    if args.title:
        raise ModelError("--title is for a page of findings; an experiment has its own")
    content = report.read_folder(folders[0]) if folders else report.read_runs(read_runs(args.runs))
    write_text(args.out, report.write_page(content, trust=args.trust))
    many = len(content.results or content.runs)
    if args.json:
        print_json({"file": str(args.out), "runs": many})
    else:
        print(f"{args.out}: {many} run{'s' if many > 1 else ''}")
    return 0
