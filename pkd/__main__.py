"""`python -m pkd` is the command line `pkd`."""

import sys

from pkd.cli import main

if __name__ == "__main__":
    sys.exit(main())
