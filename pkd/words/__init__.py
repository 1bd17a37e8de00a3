"""Words of command lines and files: models with their flags."""
