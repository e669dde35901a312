"""Kernels (functions compiled by numba): import of numba, kernel cache on disk, and threads."""
