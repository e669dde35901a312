"""What benchmarks make of pairs that were taken in turn."""

from collections.abc import Sequence
from statistics import quantiles


def half_width(ratios: Sequence[float]) -> float:
    """Half of a 95 % interval around their median, by quartiles (McGill, Tukey & Larsen 1978): 1.57·IQR/√n."""
    low, _, high = quantiles(ratios, method="inclusive")
    return float(1.57 * (high - low) / len(ratios) ** 0.5)
