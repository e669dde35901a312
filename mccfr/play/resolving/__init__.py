"""Re-solving at the table: subgames, gadget games, whole re-solved strategies, and players."""

from mccfr.play.resolving.all_spots import resolve_street
from mccfr.play.resolving.solve import Effort

__all__ = ["Effort", "resolve_street"]
