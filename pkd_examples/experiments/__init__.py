"""Experiment files for the examples, one for each registered name: `pkd experiment NAME`."""
