"""A kiln whose burner obeys late: x is the draught just seen, y = (heat, commands on their way)."""

import pkd


class Kiln(pkd.PartiallyKnownMDP):
    """Each action is a command to the burner. It takes effect `lag` steps later."""

    def __init__(self, lag=3, horizon=12):
        self.lag, self.horizon = lag, horizon

    def start(self):
        return None, (5, pkd.Queue([0] * self.lag))

    def actions(self, x, y):
        return (0, 1, 2) if x is None else pkd.CHANCE  # a draught was seen: cool down, then choose

    def step(self, x, y, a):
        heat, commands = y
        if x is None:
            sent = commands.push(a)
            return [(1.0, (heat + sent.oldest, sent.pop()), "draught")]  # one law for all states
        return [(1.0, (min(max(heat - x, 0), 9), commands), pkd.sure(None))]

    def outcomes(self, z):
        return (0, 1, 2)

    def reward(self, x, y, a):
        return 0.0 if x is None else float(5 <= y[0] - x <= 7)  # 1 for each step in the good range


def kiln(lag=3, horizon=12):
    """A kiln with a burner that obeys late; the draught is unknown."""
    return Kiln(lag, horizon), {"draught": {0: 0.2, 1: 0.5, 2: 0.3}}


def facts():
    """For `pkd verify`: (what, expected, found, tolerance)."""
    found = pkd.plan(kiln(lag=0, horizon=12)).value
    yield "kiln: without a lag every step is in the good range", 12.0, found, 1e-12
