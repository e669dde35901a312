"""Outcome sampling: the algorithm and its two kernels."""
