"""The engine for tables: models whose answers lie in arrays."""
