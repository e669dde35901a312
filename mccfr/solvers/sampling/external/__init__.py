"""External sampling: the algorithm and its two kernels."""
