"""The theory of delays as code: hard instances, l1 estimation, priors, hardness, POMDPs."""
