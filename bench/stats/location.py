"""Robust location with intervals: lower quartile, trimmed mean, Yuen.

Sources: Yuen (1974), "The two-sample trimmed t for unequal population variances", Biometrika 61;
Wilcox (2022), "Introduction to Robust Estimation and Hypothesis Testing", 5th ed., ch. 4 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, nan, sqrt

import numpy as np
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
    return float(np.quantile(np.asarray(samples, dtype=np.float64), 0.25))


def trimmed_mean(values: Sequence[float], trim: float = TRIM) -> float:
    """Mean without the floor(trim·n) smallest and largest values."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    cut = floor(trim * len(ordered))
    return float(ordered[cut : len(ordered) - cut].mean())


def trimmed_error(values: Sequence[float], trim: float = TRIM) -> tuple[float, int]:
    """Standard error of the trimmed mean and its degrees of freedom (Tukey & McLaughlin 1963).

    s_w / ((1 − 2·trim)·√n) in Wilcox; here with the count h = n − 2·floor(trim·n) actually kept:
    √(SS_w / (h·(h − 1))), which is Yuen's form. SS_w is the winsorised sum of squares.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    cut = floor(trim * n)
    kept = n - 2 * cut
    if kept < 2:
        return nan, 0
    winsorised = np.clip(ordered, ordered[cut], ordered[n - cut - 1])
    squares = float(((winsorised - winsorised.mean()) ** 2).sum())
    return sqrt(squares / (kept * (kept - 1))), kept - 1


def trimmed_interval(values: Sequence[float], confidence: float = 0.95, trim: float = TRIM) -> Interval:
    """Trimmed mean with its Student t interval; under two kept values the ends are nan."""
    centre = trimmed_mean(values, trim)
    error, freedom = trimmed_error(values, trim)
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
