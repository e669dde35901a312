"""Monte Carlo counterfactual regret minimisation for huge abstracted imperfect-information games."""

__version__ = "0.1.0"
