"""Evaluation methods: one module for each, a registry, and the base classes for user-defined methods.

A method declares its options, the games it suits, and how its records are printed. The computation is outside this
folder and imported only when something is measured.
"""

from mccfr.evaluation.methods.method import EvaluationLine, Method

__all__ = ["EvaluationLine", "Method"]
