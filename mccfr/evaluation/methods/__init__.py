"""Evaluation methods: one module for each, a registry, and the base classes for user-defined methods.

A method declares its options, the games it suits, and how its records are printed. The computation is outside this
folder and imported only when something is measured.
"""

from mccfr.evaluation.methods.method import EvaluationLine, Method
from mccfr.evaluation.methods.option_structs import BoardOptions, MethodOptions, Option, SampledOptions
from mccfr.evaluation.methods.registry import (
    check_method,
    find_method,
    line_kind,
    load_method,
    measure,
    method_for,
    record_text,
)

__all__ = [
    "BoardOptions",
    "EvaluationLine",
    "Method",
    "MethodOptions",
    "Option",
    "SampledOptions",
    "check_method",
    "find_method",
    "line_kind",
    "load_method",
    "measure",
    "method_for",
    "record_text",
]
