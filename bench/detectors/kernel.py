"""The bounded-kernel segmentation: finds where the distribution of a series changed.

Minimises, over all segmentations, the sum of the segments' kernel scatter plus a penalty a change
(Harchaoui & Cappé 2007, "Retrospective multiple change-point estimation with kernels", IEEE SSP;
Arlot, Celisse & Harchaoui 2019, JMLR 20; pruning of Killick, Fearnhead & Eckley 2012, JASA 107).
Why it works on performance histories: the kernel is bounded, so that an outlier costs one unit
however far off it is; the penalty needs no permutations, so that the answer is the same every time.

The search is `ruptures` where that is installed. Elsewhere the same recursion in numpy gives the same
answer, 7 to 30 times slower, short series most.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import exp

import numpy as np

from bench.stats.noise import Values

GAMMA = 0.05
"""Width of exp(−γ·d²), d in units of noise: a difference of 3.7 is half way to "unlike". In the middle of
the flat optimum on real histories (0.02 to 0.1)."""

FEWEST = 5
"""Points that a level must last: what a mark on a real history needs too, and what keeps single outliers out."""

NEAREST, FARTHEST = np.float32(0.01), np.float32(100.0)
"""Between these `ruptures` clips γ·d², in single precision; so do we, or the answers would differ."""

Search = Callable[[Values, float], list[int]]


class KernelDetector:
    """Changes that take at least `penalty` off the kernel scatter of what they divide."""

    name = "kernel"

    def __init__(self, penalty: float) -> None:
        self.penalty = penalty

    def changes(self, values: Values) -> list[int]:
        """First indices of new levels, ascending; `values` in units of noise, shape (n,), oldest first."""
        if len(values) < 2 * FEWEST:
            return []
        return search()(values, self.penalty)


@cache
def search() -> Search:
    """The fastest search there is here."""
    try:
        from ruptures.detection.kernelcpd import KernelCPD
    except ImportError:
        return segment

    def fast(values: Values, penalty: float) -> list[int]:
        found = KernelCPD(kernel="rbf", min_size=FEWEST, params={"gamma": GAMMA}).fit(values).predict(pen=penalty)
        return [int(index) for index in found[:-1]]

    return fast


def segment(values: Values, penalty: float) -> list[int]:
    """The same in numpy: O(n²) time, O(n) memory, for at least 2 · FEWEST values.

    `block[s]` is the sum of the kernel over all pairs of values[s:t]; `cost[t]` the least cost of
    values[:t], `last[t]` where its last segment begins. Starts before `first` are pruned.
    """
    n, itself = len(values), exp(-float(NEAREST))
    block, cost, last = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1, dtype=np.intp)
    starts, first = np.arange(n + 1), 0
    for t in range(1, n + 1):
        distance = (values[first:t] - values[t - 1]) ** 2
        likeness = np.exp(-np.clip((GAMMA * distance).astype(np.float32), NEAREST, FARTHEST).astype(np.float64))
        block[first:t] += 2 * np.cumsum(likeness[::-1])[::-1] - itself
        scatter = itself * (t - starts[first:t]) - block[first:t] / (t - starts[first:t])
        if t < 2 * FEWEST:
            cost[t] = scatter[0] + penalty
            continue
        total = cost[first:t] + scatter
        total[t - first - FEWEST + 1 :] = np.inf  # the last segment would be too short
        if first == 0:
            total[1:FEWEST] = np.inf  # the first segment would be
        best = int(total.argmin())
        cost[t], last[t] = total[best] + penalty, first + best
        while first <= t - FEWEST and total[first - (t - len(total))] >= cost[t]:
            first += FEWEST if first == 0 else 1
    return _path(last)


def _path(last: np.ndarray) -> list[int]:
    changes, t = [], int(last[-1])
    while t > 0:
        changes.append(t)
        t = int(last[t])
    return changes[::-1]
