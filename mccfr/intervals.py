"""95 % intervals from few units - boards of an evaluation, seeds of an experiment: Student's t times a standard error.

The factor 1.96 of the normal distribution holds for many units only: with it, an interval from two covers 70 % and one
from five 88 %.
"""

from math import sqrt

import numpy as np
import numpy.typing as npt

_T95 = (12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139)
"""Student's t, two-sided 95 %, for 1 to 10 degrees of freedom."""
_Z95 = 1.959964


def student95(freedom: int) -> float:
    """Student's t, two-sided 95 %; from 11 degrees of freedom by its expansion in 1/freedom, right to 2e-4.

    Raises `ValueError` below 1 degree of freedom: one unit says nothing of how units differ.
    """
    if freedom < 1:
        raise ValueError(f"freedom = {freedom}: an interval needs at least two units, which leave 1 degree of freedom")
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    z = _Z95
    terms = ((z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))


def ratio95(
    value: npt.NDArray[np.float64], weight: npt.NDArray[np.float64], population: int | None = None
) -> tuple[float, tuple[float, float]]:
    """Ratio of the sums of value [n] and weight [n] over units drawn at random, and its 95 % interval.

    The standard error is that of a ratio (Cochran 1977, "Sampling techniques", section 2.11): what counts is how far
    each value is from the ratio times its own weight; it is multiplied with Student's t for n - 1 degrees of freedom.
    `population` is the number of units that there are, None where they are too many to count: units are then drawn
    without repetition, and when all have been drawn the ratio is exact and the interval has no width.

    Raises `ValueError` for one unit of several.
    """
    count, ratio = len(value), float(value.sum() / weight.sum())
    if count == population:
        return ratio, (ratio, ratio)
    rest = value - ratio * weight
    freedom = count - 1
    factor = student95(freedom)
    undrawn = 1.0 if population is None else 1 - count / population
    error = sqrt(float(rest @ rest) / freedom / count * undrawn) / float(weight.mean())
    return ratio, (ratio - factor * error, ratio + factor * error)
