"""Transformers make a partially known MDP of another one, whose features stay the unknown ones.

`LateActions` lets commands travel before they are executed; `Missing` lets observations go missing.
Each takes any base and gives a partially known MDP again, so they can be put on top of each other.
`Censored` lets a log say "at least so much". `Travel` is the law of how long something is on its
way.
"""

from __future__ import annotations

from pkd.transforms.censored import Censored
from pkd.transforms.late_actions import ACTS, COMES, SENDS, LateActions, OnWay
from pkd.transforms.missing import Missing
from pkd.transforms.transformed import Transformed
from pkd.transforms.travel import Line, Travel

__all__ = [
    "ACTS", "COMES", "SENDS", "Censored", "LateActions", "Line", "Missing", "OnWay",
    "Transformed", "Travel",
]  # fmt: skip
