"""Trains runs: run directories, worker processes on shared tables, checkpoints and evaluations."""
