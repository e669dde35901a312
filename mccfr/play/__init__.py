"""Playing a policy: a seat at the table, and hands as text that other programs read."""

from mccfr.play.seat import Seat

__all__ = ["Seat"]
