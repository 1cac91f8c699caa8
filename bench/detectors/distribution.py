"""The empirical distribution: finds small steps that last long, which the kernel prices too high.

The cost of a segment is −2 times the log-likelihood of its empirical distribution function, integrated
over the quantiles of the whole stretch with weights that favour the tails (Zou, Yin, Feng & Wang 2014,
"Nonparametric maximum likelihood approach to multiple change-point problems", Annals of Statistics 42;
Haynes, Fearnhead & Eckley 2017, "A computationally efficient nonparametric approach for changepoint
detection", Statistics and Computing 27: 4·ln n quantiles). It sees only ranks, so that no outlier and
no change of units matters. Searched by binary segmentation (Vostrikova 1981): one vectorised pass a
level, and on stretches that the kernel has cut already there is rarely a second level.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, log

import numpy as np

from bench.detectors.kernel import FEWEST
from bench.stats.noise import Values

SHORTEST = 60
"""Stretches under this are left alone: no step was found there in real noise that the kernel did not find."""

QUANTILES = 4.0
"""Quantiles that stand for the integral, times ln n (Haynes et al. 2017)."""


class DistributionDetector:
    """Changes that gain at least `penalty` of twice the empirical distribution's log-likelihood."""

    name = "distribution"

    def __init__(self, penalty: float) -> None:
        self.penalty = penalty

    def changes(self, values: Values) -> list[int]:
        """First indices of new levels, ascending; `values` of any scale, shape (n,), oldest first."""
        n = len(values)
        if n < SHORTEST:
            return []
        gain = gains(values)
        best = int(gain.argmax())
        if gain[best] < self.penalty:
            return []
        at = best + FEWEST
        return [*self.changes(values[:at]), at, *(at + i for i in self.changes(values[at:]))]


def gains(values: Values) -> Values:
    """What a split before index FEWEST, FEWEST + 1, …, n − FEWEST takes off the cost; shape (n − 2·FEWEST + 1,).

    Values equal to a quantile count half below it. Counts are doubled to stay whole, and k·ln k is a
    table: the logarithms are most of the work.
    """
    n = len(values)
    quantiles, weight = _quantiles(n)
    cuts = np.sort(values)[quantiles]
    column = values[:, None]
    below = np.cumsum((column < cuts).astype(np.intp) + (column <= cuts), axis=0)
    left, whole = below[FEWEST - 1 : n - FEWEST], below[-1]
    sizes = np.arange(FEWEST, n - FEWEST + 1)
    twice = 2 * sizes[:, None]
    table = _k_log_k(n)
    right = whole - left
    parts = table[left] + table[twice - left] + table[right] + table[2 * n - twice - right]
    ends = table[2 * sizes] + table[2 * (n - sizes)] - table[2 * n]
    at_once = (table[whole] + table[2 * n - whole]).sum()
    return np.asarray(weight * (parts.sum(axis=1) - at_once - len(quantiles) * ends))


@lru_cache(maxsize=64)
def _quantiles(n: int) -> tuple[np.ndarray, float]:
    """Positions in the sorted values, and the weight of each: Haynes et al. (2017), section 3.1."""
    count = ceil(QUANTILES * log(n))
    reach = log(2 * n - 1)
    share = 1 / (1 + np.exp(-reach * ((2 * np.arange(1, count + 1) - 1) / count - 1)))
    return np.minimum((share * n).astype(np.intp), n - 1), 2 * reach / count


@lru_cache(maxsize=64)
def _k_log_k(n: int) -> Values:
    """k·ln k for k = 0, ½, 1, …, n, at index 2k."""
    halves = np.arange(2 * n + 1) / 2
    return np.asarray(halves * np.log(np.maximum(halves, 0.5)))
