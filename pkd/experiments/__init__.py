"""Many runs: agents, grids of runs, where results are kept, and who computes them."""
