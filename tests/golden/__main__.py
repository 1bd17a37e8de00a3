"""Writes the frozen numbers anew: `python -m tests.golden`."""

from __future__ import annotations

import json

from tests.golden import FILE, cases, measure

if __name__ == "__main__":
    found = {name: measure(problem) for name, problem in cases()}
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
