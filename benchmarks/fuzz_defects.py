"""Does the net find old defects? Each is put back, and its campaign runs until it finds something.

    python benchmarks/fuzz_defects.py --seconds 120

The table says how many seeds and seconds the first finding took. A finding counts only if the same
seed finds nothing without the defect. The exit code is 1 if a defect was not found. The defects are
those of tests/fuzz/defects.py.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fuzz.__main__ import run_campaign
from tests.fuzz.defects import DEFECTS


def main() -> int:
    """Prints one line for each defect."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="for each defect at most")
    parser.add_argument("--only", nargs="+", choices=DEFECTS, default=list(DEFECTS))
    args = parser.parse_args()
    missed = 0
    print(f"{'defect':68} {'campaign':8} {'seeds':>6} {'seconds':>8}  found", flush=True)
    for name in args.only:
        defect = DEFECTS[name]
        run_campaign(defect.campaign, 0, 1, args.seconds, 1)  # compiles the kernels
        found = run_campaign(defect.campaign, 0, 10**9, args.seconds, 1, name)
        said = found.findings[0].splitlines()[0][:90] if found.findings else "nothing"
        for seed in re.findall(r"--seed (\d+)", "".join(found.findings)):
            if run_campaign(defect.campaign, int(seed), 1, args.seconds, 1).findings:
                said = f"nothing: without the defect the seed {seed} finds something, too"
        missed += said.startswith("nothing")
        label = f"{name}. {defect.says}"
        line = f"{label:68} {found.name:8} {found.seeds:6} {found.seconds:8.1f}  {said}"
        print(line, flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
