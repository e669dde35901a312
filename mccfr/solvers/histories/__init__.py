"""Full-width passes over a game: every history, nothing sampled."""
