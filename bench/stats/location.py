"""Robust location with intervals: lower quartile, trimmed mean, Yuen.

Sources: Yuen (1974), "The two-sample trimmed t for unequal population variances", Biometrika 61;
Wilcox (2022), "Introduction to Robust Estimation and Hypothesis Testing", 5th ed., ch. 4 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, fsum, nan, sqrt

from scipy.special import stdtrit

TRIM = 0.2
"""Share cut from each end: Wilcox's recommendation, and the best of the study on launch values."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Point and two-sided interval; low and high are nan where the data are too few."""

    value: float
    low: float
    high: float
    n: int


def lower_quartile(samples: Sequence[float]) -> float:
    """25 % quantile by linear interpolation (Hyndman & Fan type 7).

    The lower quartile of samples of one process is nearly free of preemption noise and, unlike the
    minimum, of rare fast outliers.
    """
    # Equal to np.quantile to the last bit, in a tenth of its time: a nightly run asks 100,000 times.
    ordered = sorted(samples)
    below, quarter = divmod(len(ordered) - 1, 4)
    low, share = float(ordered[below]), quarter / 4
    if not quarter:
        return low
    high = float(ordered[below + 1])
    return high - (high - low) * (1 - share) if share >= 0.5 else low + (high - low) * share


def trimmed_mean(values: Sequence[float], trim: float = TRIM) -> float:
    """Mean without the floor(trim·n) smallest and largest values."""
    return _centre(sorted(map(float, values)), trim)


def _centre(ordered: list[float], trim: float) -> float:
    cut = floor(trim * len(ordered))
    kept = ordered[cut : len(ordered) - cut]
    return fsum(kept) / len(kept)


def trimmed_error(values: Sequence[float], trim: float = TRIM) -> tuple[float, int]:
    """Standard error of the trimmed mean and its degrees of freedom (Tukey & McLaughlin 1963).

    s_w / ((1 − 2·trim)·√n) in Wilcox; here with the count h = n − 2·floor(trim·n) actually kept:
    √(SS_w / (h·(h − 1))), which is Yuen's form. SS_w is the winsorised sum of squares.
    """
    return _error(sorted(map(float, values)), trim)


def _error(ordered: list[float], trim: float) -> tuple[float, int]:
    n = len(ordered)
    cut = floor(trim * n)
    kept = n - 2 * cut
    if kept < 2:
        return nan, 0
    low, high = ordered[cut], ordered[n - cut - 1]
    winsorised = [low] * cut + ordered[cut : n - cut] + [high] * cut
    mean = fsum(winsorised) / n
    squares = fsum((value - mean) ** 2 for value in winsorised)
    return sqrt(squares / (kept * (kept - 1))), kept - 1


def trimmed_interval(values: Sequence[float], confidence: float = 0.95, trim: float = TRIM) -> Interval:
    """Trimmed mean with its Student t interval; under two kept values the ends are nan."""
    ordered = sorted(map(float, values))
    centre = _centre(ordered, trim)
    error, freedom = _error(ordered, trim)
    if freedom < 1:
        return Interval(centre, nan, nan, len(values))
    half = float(stdtrit(freedom, 0.5 + confidence / 2)) * error
    return Interval(centre, centre - half, centre + half, len(values))


def difference_interval(
    base: Sequence[float], head: Sequence[float], confidence: float = 0.95, trim: float = TRIM
) -> Interval:
    """Yuen's interval for trimmed mean(head) − trimmed mean(base) of two independent samples.

    Degrees of freedom after Welch. Ends are nan where a side keeps fewer than two values.
    """
    centre = trimmed_mean(head, trim) - trimmed_mean(base, trim)
    (e1, f1), (e2, f2) = trimmed_error(base, trim), trimmed_error(head, trim)
    n = min(len(base), len(head))
    if f1 < 1 or f2 < 1:
        return Interval(centre, nan, nan, n)
    a, b = e1**2, e2**2
    if a + b == 0.0:
        return Interval(centre, centre, centre, n)
    freedom = (a + b) ** 2 / (a**2 / f1 + b**2 / f2)
    half = float(stdtrit(freedom, 0.5 + confidence / 2)) * sqrt(a + b)
    return Interval(centre, centre - half, centre + half, n)
