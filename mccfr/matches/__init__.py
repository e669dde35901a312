"""Matches of policies, programs and people; protocols of servers, hand files and hand review."""

from mccfr.matches.hand_files.writing import write_hands
from mccfr.matches.phh_format import Hand

__all__ = ["Hand", "write_hands"]
