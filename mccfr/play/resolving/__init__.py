"""Re-solving at the table: subgames, gadget games, whole re-solved strategies, and players."""

from mccfr.play.resolving.all_spots import ResolvedStrategy, resolve_street, resolve_streets
from mccfr.play.resolving.resolving_seat import ResolvedRange, ResolvingSeat, ResolvingSpec
from mccfr.play.resolving.resolving_spot import Spot
from mccfr.play.resolving.resolving_table import STREETS, PublicState, Resolver, Settings
from mccfr.play.resolving.solve import METHODS, Effort, Resolved, resolve

__all__ = [
    "METHODS",
    "STREETS",
    "Effort",
    "PublicState",
    "Resolved",
    "ResolvedRange",
    "ResolvedStrategy",
    "Resolver",
    "ResolvingSeat",
    "ResolvingSpec",
    "Settings",
    "Spot",
    "resolve",
    "resolve_street",
    "resolve_streets",
]
