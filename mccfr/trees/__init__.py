"""Compiled trees for kernels, betting lines, and the division of betting trees by streets."""
