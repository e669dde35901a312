"""Solving again what lies ahead: spots, the gadgets before them, and whole strategies made of their solutions."""

from mccfr.play.resolving.solve import METHODS, Effort, Resolved, resolve
from mccfr.play.resolving.spot import Spot
from mccfr.play.resolving.whole import Whole, resolve_street, resolve_streets

__all__ = ["METHODS", "Effort", "Resolved", "Spot", "Whole", "resolve", "resolve_street", "resolve_streets"]
