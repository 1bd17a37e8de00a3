"""Studies of the paper's statements that a grid cannot say.

The others are experiment files, `pkd experiment --list`. Each of these is one command that writes a
figure, a table and its conclusions.

    python -m benchmarks.studies.regret_in_episodes     the slope of regret in K
    python -m benchmarks.studies.optimism_failures      how often a plan falls below the optimum
    python -m benchmarks.studies.crude_max_delay        what a crude bound on the delay costs

All take --quick and --out; `python benchmarks/studies/run_all.py` runs them one after the other.
Regret is exact: the optimal value less the exact value of each policy, so only the data that the
learner meets is random.
"""
