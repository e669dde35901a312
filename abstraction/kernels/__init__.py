"""Kernels: the only import of numba, the kernel cache on disk, and threads that run kernels."""
