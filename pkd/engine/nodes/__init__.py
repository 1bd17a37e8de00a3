"""The engine for small and unstructured models: a list of nodes, every state apart."""
