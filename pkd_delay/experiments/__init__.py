"""Experiment files for the delayed models, one for each registered name: `pkd experiment NAME`."""
