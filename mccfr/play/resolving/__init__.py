"""Re-solving at the table: subgames, gadget games, whole re-solved strategies, and players."""

from mccfr.play.resolving.seat import ResolvedRange, ResolvingSeat, ResolvingSpec
from mccfr.play.resolving.solve import METHODS, Effort, Resolved, resolve
from mccfr.play.resolving.spot import Spot
from mccfr.play.resolving.table import STREETS, PublicState, Resolver, Settings
from mccfr.play.resolving.whole import Whole, resolve_street, resolve_streets

__all__ = [
    "METHODS",
    "STREETS",
    "Effort",
    "PublicState",
    "Resolved",
    "ResolvedRange",
    "Resolver",
    "ResolvingSeat",
    "ResolvingSpec",
    "Settings",
    "Spot",
    "Whole",
    "resolve",
    "resolve_street",
    "resolve_streets",
]
