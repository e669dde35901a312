"""Outcome sampling: the algorithm as a run sees it, and its two kernels."""
