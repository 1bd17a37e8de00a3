"""Ready-made late environments: importing this module registers their ids with Gymnasium.

`gymnasium.make("pkd_delay.envs:pkd_delay/FrozenLake-d2-v0")` imports it. So does
`gymnasium.make("pkd_delay:pkd_delay/FrozenLake-d2-v0")`, if Gymnasium was imported before
`pkd_delay`. `pkd_delay.benchmark` has the exact optimum of each id.
"""
