"""Play at a table: players, policies as players, ranges by Bayes' rule, EVs, and re-solving."""

from mccfr.play.player import Player, PlayerSpec, Program
from mccfr.play.policy_seat import PolicySpec, Seat

__all__ = ["Player", "PlayerSpec", "PolicySpec", "Program", "Seat"]
