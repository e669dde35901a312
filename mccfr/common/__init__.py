"""Helpers of all packages, independent of games: random numbers, intervals, signals, arguments."""
