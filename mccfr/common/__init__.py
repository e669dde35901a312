"""Helpers of all packages that know nothing of games: random numbers, intervals, signals, checks of arguments."""
