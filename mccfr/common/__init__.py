"""Helpers of all packages: random numbers, confidence intervals, signals, checks of arguments."""
