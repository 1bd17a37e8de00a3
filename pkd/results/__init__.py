"""Records of runs, files, plots and reports."""
