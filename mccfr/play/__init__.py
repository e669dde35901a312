"""Play at the table: policies and programs as players, protocols of servers, and hand histories."""

from mccfr.play.hand_files.written import write_hands
from mccfr.play.hands import Hand
from mccfr.play.player import Player, PlayerSpec, Program
from mccfr.play.seat import PolicySpec, Seat

__all__ = ["Hand", "Player", "PlayerSpec", "PolicySpec", "Program", "Seat", "write_hands"]
