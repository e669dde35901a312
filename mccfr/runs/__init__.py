"""Runs: a run directory, worker processes on shared tables, and the loop that checkpoints and evaluates them."""
