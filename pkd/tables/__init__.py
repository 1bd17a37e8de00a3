"""Tables: tabular models, their sources and exports."""
