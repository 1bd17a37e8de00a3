"""Domains beyond delays: each is an MDP with partially known dynamics in one short file.

In most of them y holds what book-keeping determines (stock, charge, capital), and x is what nature
shows next. A few features z then replace thousands of state-action pairs. Every file holds the
model, a synthetic law, an entry point with options that returns a `Problem`, and a picture of the
optimal policy. The files use only the public names of `pkd`, and never each other's insides.

>>> from pkd_examples.gambler import gambler
>>> problem = gambler(goal=100, win=0.4)
>>> problem.law()
{'coin': {'heads': 0.4, 'tails': 0.6}}
"""

from pkd import fit_law, read_log
from pkd_examples.problem import Problem

__all__ = ["Problem", "fit_law", "read_log"]
