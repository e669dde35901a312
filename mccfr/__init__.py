"""Monte Carlo counterfactual regret minimisation for huge abstracted imperfect-information games."""

from mccfr.neighbours import check_neighbours

__version__ = "0.1.0"

check_neighbours()
