"""Planning: exact and optimistic plans, evaluation of policies, simulation, stationary policies."""
