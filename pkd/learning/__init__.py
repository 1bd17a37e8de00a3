"""Learning: the algorithm, the loop against a law, the learner in an environment."""
