"""The engine for large models with a queue: V[x, y] over stripes of columns that move alike."""
