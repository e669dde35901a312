"""Experiments: several variants and seeds of one run, measured and compared in tables and a plot."""
