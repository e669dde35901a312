"""What is done with a run's results: averages, evaluations, exports, matches, players."""
