"""Playing: policies and programs at the table, and hands as text that other programs read."""

from mccfr.play.hands import Hand, write_hands
from mccfr.play.player import Player, Program
from mccfr.play.seat import Seat

__all__ = ["Hand", "Player", "Program", "Seat", "write_hands"]
