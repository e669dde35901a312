"""Uses of a run's results: averages, evaluations, exports, matches and players."""
