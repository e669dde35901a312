"""Compiled trees: the forms that kernels take, betting lines, the cut by streets."""
