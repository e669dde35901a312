"""95 % intervals of means and ratios over few samples, by Student's t.

Samples are boards of an evaluation or seeds of an experiment.  The normal distribution's factor 1.96 holds for many
samples only.  With it, an interval of two samples covers 70 %, one of five 88 %.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_T95 = (12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139)
"""Student's t, two-sided 95 %, for 1 to 10 degrees of freedom."""
_Z95 = 1.959964


class Estimate(NamedTuple):
    """A mean, and `within`: half the width of its 95 % interval in the same unit; 0: the mean is exact."""

    mean: float
    within: float


def student95(freedom: int) -> float:
    """Return Student's t with `freedom` degrees of freedom, for a two-sided 95 % interval.

    Above 10 degrees of freedom it is an expansion in 1/freedom, with an error below 2e-4.  Raises `ValueError` below 1,
    because one sample has no variance.
    """
    if freedom < 1:
        raise ValueError(
            f"freedom = {freedom}: an interval needs at least two samples, which leave 1 degree of freedom"
        )
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    z = _Z95
    terms = ((z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))


def ratio95(
    value: npt.NDArray[np.float64], weight: npt.NDArray[np.float64], population: int | None = None
) -> tuple[float, tuple[float, float]]:
    """Return sum(value) / sum(weight) over n random samples, and the ratio's 95 % interval.

    The standard error is that of a ratio (Cochran 1977, "Sampling techniques", section 2.11), from the residuals value
    - ratio · weight.  It is multiplied by Student's t for n - 1 degrees of freedom.

    value       [n] value of each sample times its weight, such as the chips won on a board times the board's weight
    weight      [n] weight of each sample
    population  number of possible samples, which are drawn without replacement; the interval of all of them has
                width 0.  None: practically infinite

    Raises `ValueError` for a single sample, unless it is the whole population.
    """
    count, ratio = len(value), float(value.sum() / weight.sum())
    if count == population:
        return ratio, (ratio, ratio)
    residual = value - ratio * weight
    freedom = count - 1
    factor = student95(freedom)
    undrawn = 1.0 if population is None else 1 - count / population
    error = sqrt(float(residual @ residual) / freedom / count * undrawn) / float(weight.mean())
    return ratio, (ratio - factor * error, ratio + factor * error)
