"""Kernels: numba's door, how they are compiled and kept, and threads that run them."""
