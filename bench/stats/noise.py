"""How noisy a history is, without being told where it changes.

The scale comes from differences of neighbours: a change touches one of them, so that the noise of a
series with ten changes is the noise of its quiet parts (Hampel 1974, "The influence curve and its
role in robust estimation", JASA 69, for the median absolute deviation; differences after von Neumann
1941, Annals of Mathematical Statistics 12).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from bench.errors import UsageError

SIGMAS_PER_MAD = 1.4826
"""Makes the median absolute deviation of a normal law its standard deviation: 1 / Φ⁻¹(3/4)."""

SMALLEST_NOISE = 5e-4
"""Noise counts as at least 0.05 %: under the tenth percentile of real machines (0.08 %), and not zero
where a series is made of equal values."""

Values = NDArray[np.float64]


def as_values(values: Sequence[float] | Values) -> Values:
    """A float array of shape (n,). Raises UsageError for a value that is not finite, or another shape."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise UsageError(f"a series is one row of values, this has shape {array.shape}; pass one series at a time")
    if not np.isfinite(array).all():
        at = int(np.flatnonzero(~np.isfinite(array))[0])
        raise UsageError(f"value {at + 1} of {len(array)} is {array[at]}: leave out points that were not measured")
    return array


def median(values: Values) -> float:
    """The median of at least one value; a fifth of the time of `numpy.median` on short arrays."""
    ordered = np.sort(values)
    middle = len(ordered) // 2
    return float(ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2)


def deviation(values: Values) -> float:
    """Normal-consistent median absolute deviation from the median."""
    return SIGMAS_PER_MAD * median(np.abs(values - median(values)))


def relative(values: Values) -> Values:
    """What changes are measured in: logarithms, so that 5 % is 5 % at every level.

    Where a value is not positive: (y − median) / median |y|, or / mean |y| where over half are zero.
    """
    if len(values) == 0 or values.min() > 0:
        return np.log(values)
    size = np.abs(values)
    unit = median(size) or float(size.mean()) or 1.0
    return (values - median(values)) / unit


def noise(x: Values) -> float:
    """Standard deviation of one point of `x` (shape (n,), relative scale) around its local level."""
    if len(x) < 2:
        return SMALLEST_NOISE
    return max(deviation(np.diff(x)) / sqrt(2), SMALLEST_NOISE)


def standardize(x: Values) -> Values:
    """`x` in units of its noise, its median at 0: what detectors see."""
    return (x - median(x)) / noise(x) if len(x) else x


def newest_z(x: Values) -> float:
    """How far the last of `x` lies from the others, in robust standard deviations of those; nan for under 3 values."""
    if len(x) < 3:
        return float("nan")
    before = x[:-1]
    z = (float(x[-1]) - median(before)) / max(deviation(before), SMALLEST_NOISE)
    return z if isfinite(z) else 0.0
