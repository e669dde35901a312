"""Re-solving of subgames: gadget games, players that re-solve, and whole re-solved strategies."""

from mccfr.play.resolving.all_spots import resolve_street
from mccfr.play.resolving.solve import Effort

__all__ = ["Effort", "resolve_street"]
