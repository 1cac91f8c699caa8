"""How much a level moved: the Hodges–Lehmann shift with an interval that minds the memory of the noise.

Sources: Hodges & Lehmann (1963), "Estimates of location based on rank tests", Annals of Mathematical
Statistics 34; Lehmann (1975), "Nonparametrics", section 2.5, for the interval; Bayley & Hammersley
(1946), "The effective number of independent observations in an autocorrelated time series",
supplement to JRSS 8, for the inflation (1 + ρ) / (1 − ρ).

Chosen on real noise with known steps (2,880 at their true place; 1,676 where a detector put them):
95 % intervals held the truth in 94.5 % and 93.7 %, and the median error was 0.35 % and 0.18 %.
Without the inflation 91.3 % and 90.2 %; Yuen's interval with it 95.2 % and 94.2 %, but the error of
the estimate 0.54 % and 0.26 %; medians 91.9 % and 89.4 %, 0.49 % and 0.27 %.
"""

from __future__ import annotations

from math import nan, sqrt

import numpy as np
from scipy.special import ndtri

from bench.stats.location import Interval
from bench.stats.noise import SIGMAS_PER_MAD, Values, median

MOST_MEMORY = 0.8
"""Largest lag-1 autocorrelation believed: inflates a variance ninefold."""

CLIP = 3.0
"""Residuals count as at most this many standard deviations, so that one outlier is not a memory."""


def shift(before: Values, after: Values, confidence: float = 0.95) -> Interval:
    """Median of all differences after − before, with the interval of the rank test that belongs to it.

    The ends are nan where the two sides have too few values for that confidence.
    """
    differences = np.sort((after[:, None] - before[None, :]).ravel())
    n = min(len(before), len(after))
    value = float((differences[(len(differences) - 1) // 2] + differences[len(differences) // 2]) / 2)
    spread = sqrt(len(differences) * (len(before) + len(after) + 1) / 12 * inflation(before, after))
    rank = round(len(differences) / 2 - _normal(confidence) * spread)
    if rank < 1:
        return Interval(value, nan, nan, n)
    return Interval(value, float(differences[rank - 1]), float(differences[-rank]), n)


def level(values: Values, confidence: float = 0.95) -> Interval:
    """Median with its order-statistic interval (the sign test's); ends nan under six values or so."""
    ordered = np.sort(values)
    n = len(ordered)
    rank = round(n / 2 - _normal(confidence) * sqrt(n * inflation(values)) / 2)
    if rank < 1:
        return Interval(median(ordered), nan, nan, n)
    return Interval(median(ordered), float(ordered[rank - 1]), float(ordered[-rank]), n)


def inflation(*sides: Values) -> float:
    """How much wider variances of means are for the memory of the noise: (1 + ρ) / (1 − ρ), at least 1.

    ρ is the lag-1 autocorrelation of the residuals from each side's own median.
    """
    residuals = [side - median(side) for side in sides]
    bound = CLIP * SIGMAS_PER_MAD * median(np.abs(np.concatenate(residuals)))
    if bound == 0.0:
        return 1.0
    clipped = [np.clip(r, -bound, bound) for r in residuals]
    together = sum(float(r[1:] @ r[:-1]) for r in clipped) / sum(float(r @ r) for r in clipped)
    memory = min(max(together, 0.0), MOST_MEMORY)
    return (1 + memory) / (1 - memory)


def _normal(confidence: float) -> float:
    return float(ndtri(0.5 + confidence / 2))
