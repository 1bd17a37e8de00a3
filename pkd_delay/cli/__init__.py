"""What this package adds to the command line `pkd`, found through entry points."""
