"""Prints the optimal value of the kiln for lags 0, 1, 2, ..."""

from kiln import kiln

from pkd import cli, plan

HELP = "the price of a late burner"


def configure(parser):
    parser.add_argument("--up-to", type=cli.positive, default=4, metavar="L")


def run(args):
    rows = [(lag, plan(kiln(lag=lag)).value) for lag in range(args.up_to + 1)]
    print(cli.table(("lag", "optimal value"), rows))
    return 0
