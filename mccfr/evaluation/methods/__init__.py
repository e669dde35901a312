"""What there is to measure a strategy by: a file a method, the list of them, and what a method of one's own is made of.

A method says what it takes, which games it suits and how its records read; what it computes, with kernels, is beside
this folder and imported when something is measured.
"""

from mccfr.evaluation.methods.method import EvaluationLine, Method
from mccfr.evaluation.methods.options import BoardOptions, MethodOptions, Option, SampledOptions
from mccfr.evaluation.methods.registry import (
    check_method,
    line_kind,
    load_method,
    measure,
    method_for,
    method_named,
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
    "line_kind",
    "load_method",
    "measure",
    "method_for",
    "method_named",
    "record_text",
]
